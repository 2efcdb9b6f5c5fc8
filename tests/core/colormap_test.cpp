#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "core/figure/colormap.h"
#include "core/figure/range.h"

using namespace qkv;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();
constexpr ThemeName kThemes[] = {ThemeName::kLight, ThemeName::kDark};

int distance(Color a, Color b) { return std::abs(a.r - b.r) + std::abs(a.g - b.g) + std::abs(a.b - b.b); }

Matrix matrix_of(std::initializer_list<float> values) {
  Matrix matrix(1, static_cast<Index>(values.size()));
  Index i = 0;
  for (const float value : values) matrix(0, i++) = value;
  return matrix;
}

}  // namespace

TEST_CASE("tables begin and end with the published colours") {
  struct Ends {
    const char* name;
    Color first, last;
  };
  for (const Ends& ends : {Ends{"viridis", {0x44, 0x01, 0x54, 255}, {0xfd, 0xe7, 0x25, 255}},
                           Ends{"cividis", {0x00, 0x22, 0x4e, 255}, {0xfe, 0xe8, 0x38, 255}},
                           Ends{"magma", {0x00, 0x00, 0x04, 255}, {0xfc, 0xfd, 0xbf, 255}}}) {
    CAPTURE(ends.name);
    const ColorTable table = color_table(ends.name, ThemeName::kLight);
    CHECK(table.front() == ends.first);
    CHECK(table.back() == ends.last);
    CHECK(table == color_table(ends.name, ThemeName::kDark));
  }
}

TEST_CASE("sequential maps grow lighter, diverging maps part from the zero colour") {
  for (const ThemeName theme : kThemes) {
    const Palette& colors = palette(theme);
    for (const ColormapInfo& info : colormaps()) {
      CAPTURE(std::string(info.name));
      CHECK(is_colormap(info.name));
      const ColorTable table = color_table(info.name, theme);
      for (std::size_t i = 1; i < table.size(); ++i) {
        CAPTURE(i);
        const double step = luminance(table[i]) - luminance(table[i - 1]);
        // 8 bits a channel: a step of one can go against the trend by less than this.
        constexpr double kRounding = 0.002;
        if (!info.diverging) CHECK(step > -kRounding);
        const bool rising = theme == ThemeName::kLight ? i <= 128 : i > 128;
        if (info.diverging) CHECK((rising ? step : -step) > -kRounding);
      }
      if (info.diverging) CHECK(table[128] == colors.signed_zero);
      if (info.name == "blue-orange") {
        CHECK(table.front() == colors.signed_low);
        CHECK(table.back() == colors.signed_high);
      }
      for (const Color& entry : table) {
        CHECK(contrast(ink_on(entry), entry) > 3.9);
        CHECK(distance(entry, colors.nan_cell) > 60);
        CHECK(entry != colors.masked);
      }
    }
  }
  CHECK_FALSE(is_colormap("jet"));
  CHECK_FALSE(is_colormap(""));
}

TEST_CASE("the position 0.5 of a symmetric range is exactly the zero colour") {
  const ColorRange range = resolve_range({RangeMode::kSymmetric, 0, 1}, finite_extent(matrix_of({-3, 1})));
  CHECK(range == ColorRange{-3, 3, false});
  const auto index = static_cast<std::size_t>(table_index(range.position(0)));
  CHECK(color_table("blue-orange", ThemeName::kLight)[index] == palette(ThemeName::kLight).signed_zero);
}

TEST_CASE("table indices cover 0 to 255 and are clamped") {
  CHECK(table_index(0) == 0);
  CHECK(table_index(-0.1) == 0);
  CHECK(table_index(-1e300) == 0);
  CHECK(table_index(1.0 / 256) == 1);
  CHECK(table_index(0.5) == 128);
  CHECK(table_index(std::nextafter(1.0, 0.0)) == 255);
  CHECK(table_index(1) == 255);
  CHECK(table_index(1e300) == 255);
  CHECK(table_index(kInf) == 255);
}

TEST_CASE("luminance and contrast follow WCAG") {
  CHECK(luminance({255, 255, 255, 255}) == doctest::Approx(1));
  CHECK(luminance({0, 0, 0, 255}) == 0);
  CHECK(contrast({255, 255, 255, 255}, {0, 0, 0, 255}) == doctest::Approx(21));
  CHECK(contrast({0x77, 0x77, 0x77, 255}, {255, 255, 255, 255}) == doctest::Approx(4.478).epsilon(0.001));
  CHECK(ink_on({255, 255, 255, 255}) == Color{0x1f, 0x23, 0x28, 255});
  CHECK(ink_on({0, 0, 0, 255}) == Color{255, 255, 255, 255});
}

TEST_CASE("heads have eight different colours, then repeat") {
  std::set<int> seen;
  for (int head = 0; head < 8; ++head) {
    const Color c = head_color(head);
    seen.insert(c.r << 16 | c.g << 8 | c.b);
    CHECK(head_color(head + 8) == c);
    CHECK_FALSE(head_color_repeats(head));
    CHECK(head_color_repeats(head + 8));
  }
  CHECK(seen.size() == 8);
}

TEST_CASE("themes are found by name") {
  CHECK(theme_from_name("light") == ThemeName::kLight);
  CHECK(theme_from_name("dark") == ThemeName::kDark);
  CHECK_FALSE(theme_from_name("Dark").has_value());
}

TEST_CASE("an extent counts what is no number and leaves hidden cells out") {
  const Matrix values = matrix_of({kNan, 2, kInf, -5, -kInf, 7});
  const FiniteExtent all = finite_extent(values);
  CHECK(all.low == -5);
  CHECK(all.high == 7);
  CHECK(all.count == 3);
  CHECK(all.nan == 1);
  CHECK(all.infinite == 2);
  const Matrix keep = matrix_of({0, 1, 0, 1, 1, 0});
  const FiniteExtent visible = finite_extent(values, keep);
  CHECK(visible.low == -5);
  CHECK(visible.high == 2);
  CHECK(visible.nan == 0);
  CHECK(visible.infinite == 1);
  const FiniteExtent merged = merge(finite_extent(matrix_of({kNan})), visible);
  CHECK(merged.low == -5);
  CHECK(merged.count == 2);
  CHECK(merged.nan == 1);
}

TEST_CASE("ranges of every mode") {
  const FiniteExtent extent = finite_extent(matrix_of({-1, 3}));
  CHECK(resolve_range({RangeMode::kUnit, 0, 0}, extent) == ColorRange{0, 1, false});
  CHECK(resolve_range({RangeMode::kAuto, 0, 0}, extent) == ColorRange{-1, 3, false});
  CHECK(resolve_range({RangeMode::kSymmetric, 0, 0}, extent) == ColorRange{-3, 3, false});
  CHECK(resolve_range({RangeMode::kCustom, -2, 9}, extent) == ColorRange{-2, 9, false});
}

TEST_CASE("a logarithmic scale goes from a millionth of the largest value, or the smallest above 0, to the largest") {
  const auto log_of = [](std::initializer_list<float> values) {
    return resolve_range({RangeMode::kLog, 0, 0}, finite_extent(matrix_of(values)));
  };
  CHECK(log_of({0, 0.001F, 0.5F}) == ColorRange{0.001F, 0.5F, false, true});
  CHECK(log_of({1e-20F, 0.001F, 0.5F}) == ColorRange{1e-6F * 0.5F, 0.5F, false, true});
  CHECK(log_of({0, 0.5F}) == ColorRange{1e-6F * 0.5F, 0.5F, false, true});  // zero is not the largest
  CHECK(log_of({0.25F, 0.25F}) == ColorRange{0.25F, 0.25F, true});
  CHECK(log_of({0, 0}) == ColorRange{0, 0, true});
  CHECK(log_of({kNan, kInf}).flat);
  // Nobody looked for the smallest value.
  CHECK(resolve_range({RangeMode::kLog, 0, 0}, {0, 0.5F, 1}) == ColorRange{1e-6F * 0.5F, 0.5F, false, true});

  const ColorRange scale = log_of({0, 0.001F, 0.1F, 0.01F});
  CHECK(table_index(scale.position(0)) == 0);
  CHECK(table_index(scale.position(0.001F)) == 1);
  CHECK(scale.position(0.1F) == doctest::Approx(1));
  CHECK(scale.position(0.01F) == doctest::Approx((1 + kLogStart) / 2));
  CHECK(classify(0, true, scale) == CellClass::kValue);
  CHECK(classify(1e-9F, true, scale) == CellClass::kBelow);
  CHECK(classify(-1, true, scale) == CellClass::kBelow);
  CHECK(classify(0.2F, true, scale) == CellClass::kAbove);
}

TEST_CASE("the smallest value above 0 is found in every way in") {
  CHECK(finite_extent(matrix_of({0, 3, 2, -1})).positive == 2);
  CHECK(finite_extent(matrix_of({0, 3, kNan, 2, kInf})).positive == 2);
  CHECK(finite_extent(matrix_of({0, -3})).positive == 0);
  CHECK(finite_extent(matrix_of({1, 3, 2}), matrix_of({0, 1, 1})).positive == 2);
  CHECK(merge(finite_extent(matrix_of({0})), finite_extent(matrix_of({5, 4}))).positive == 4);
  CHECK(merge(finite_extent(matrix_of({7})), finite_extent(matrix_of({5, 4}))).positive == 4);
}

TEST_CASE("flat matrices lie in mid-scale") {
  const FiniteExtent equal = finite_extent(matrix_of({4, 4, kNan}));
  const ColorRange flat = resolve_range({RangeMode::kAuto, 0, 0}, equal);
  CHECK(flat == ColorRange{4, 4, true});
  CHECK(flat.position(4) == 0.5);
  CHECK(resolve_range({RangeMode::kSymmetric, 0, 0}, equal) == ColorRange{-4, 4, false});
  CHECK(resolve_range({RangeMode::kSymmetric, 0, 0}, finite_extent(matrix_of({0, 0}))).flat);
  CHECK(resolve_range({RangeMode::kAuto, 0, 0}, finite_extent(matrix_of({kNan, kInf}))).flat);
  CHECK_FALSE(resolve_range({RangeMode::kUnit, 0, 0}, equal).flat);
  // A custom range that is none is flat rather than a division by zero.
  CHECK(resolve_range({RangeMode::kCustom, 2, 2}, equal).flat);
  CHECK(resolve_range({RangeMode::kCustom, kNan, 2}, equal).flat);
}

TEST_CASE("the ends of float32 neither overflow nor collapse") {
  const ColorRange widest = resolve_range({RangeMode::kAuto, 0, 0}, finite_extent(matrix_of({-kMax, kMax})));
  CHECK(widest.position(-kMax) == 0);
  CHECK(widest.position(0) == 0.5);
  CHECK(widest.position(kMax) == 1);
  const float tiny = std::numeric_limits<float>::denorm_min();
  const ColorRange narrow = resolve_range({RangeMode::kAuto, 0, 0}, finite_extent(matrix_of({0, 2 * tiny})));
  CHECK(narrow.position(0) == 0);
  CHECK(narrow.position(tiny) == 0.5);
  CHECK(narrow.position(2 * tiny) == 1);
}

TEST_CASE("cells are told apart") {
  const ColorRange unit{0, 1, false};
  CHECK(classify(0, true, unit) == CellClass::kValue);
  CHECK(classify(1, true, unit) == CellClass::kValue);
  CHECK(classify(-0.1F, true, unit) == CellClass::kBelow);
  CHECK(classify(1.1F, true, unit) == CellClass::kAbove);
  CHECK(classify(kNan, true, unit) == CellClass::kNan);
  CHECK(classify(kInf, true, unit) == CellClass::kPlusInf);
  CHECK(classify(-kInf, true, unit) == CellClass::kMinusInf);
  CHECK(classify(kNan, false, unit) == CellClass::kMasked);
  CHECK(classify(5, true, {5, 5, true}) == CellClass::kValue);
}
