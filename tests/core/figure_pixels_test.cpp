// Figures as pixels: the colour of each cell, and what is drawn on it.
#include <cmath>
#include <limits>

#include "tests/core/figure_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("pixels are the colours of the table") {
  const Session session = worked_example();
  const Trace trace = run(session);
  for (const ThemeName theme : {ThemeName::kLight, ThemeName::kDark}) {
    for (const FigureView view : {FigureView::kMatrix, FigureView::kHead, FigureView::kHeads, FigureView::kConcat}) {
      for (const int cell : {1, 3, 11, 40}) {
        FigureSpec spec = spec_of(view, cell);
        spec.theme = theme;
        const Figure figure = layout(session, trace, spec);
        const PixelImage image = paint(figure);
        for (const FigureMatrix& m : figure.matrices) {
          const ColorTable table = color_table(m.colormap, theme);
          for (Index r = 0; r < m.rows(); ++r) {
            for (Index c = 0; c < m.cols(); ++c) {
              const Color expected = table[static_cast<std::size_t>(table_index(m.range.position(m.value(r, c))))];
              // In cells with numbers the point lies left of them.
              const double dx = m.numbers ? 0.5 : m.cell_w / 2, dy = m.cell_h / 2;
              const double x = m.x + static_cast<double>(c) * cell, y = m.y + static_cast<double>(r) * cell;
              CHECK(pixel(image, x + dx, y + dy) == expected);
              CHECK(pixel(image, x + cell - 1, y + dy) == expected);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("hidden cells are hatched and have no value's colour") {
  const Session session = causal();
  FigureSpec spec = spec_of(FigureView::kMatrix, 24);
  const Trace trace = run(session);
  const Figure figure = layout(session, trace, spec);
  const PixelImage image = paint(figure);
  const FigureMatrix& m = figure.matrices.front();
  const Palette& colors = palette(ThemeName::kLight);
  int fill = 0, line = 0;
  for (int dy = 0; dy < 24; ++dy) {
    for (int dx = 0; dx < 24; ++dx) {
      const Color c = pixel(image, m.x + 24 + dx, m.y + dy);  // row 0, column 1
      fill += c == colors.masked;
      line += c == colors.masked_line;
    }
  }
  CHECK(fill + line == 24 * 24);
  CHECK(line == 24 * 24 / 6);
}

TEST_CASE("NaN, infinities and clipped values can be told apart") {
  Session session = worked_example();
  Matrix& q = std::get<DirectSource>(session.problem.source).q[0].edit();
  q << kNan, kInf, -kInf, 9, -9, 0.5F, 1, 0, -1;
  FigureSpec spec = spec_of(FigureView::kMatrix, 40);
  spec.matrix.kind = MatrixKind::kQ;
  spec.look.signed_range = {RangeMode::kCustom, -1, 1};
  const Trace trace = run(session);
  const Figure figure = layout(session, trace, spec);
  const PixelImage image = paint(figure);
  const FigureMatrix& m = figure.matrices.front();
  const Palette& colors = palette(ThemeName::kLight);
  const auto cell = [&](int r, int c, int dx, int dy) { return pixel(image, m.x + 40 * c + dx, m.y + 40 * r + dy); };
  CHECK(cell(0, 0, 4, 20) == colors.nan_cell);
  for (const auto& [r, c, fill] : {std::tuple{0, 1, colors.signed_high},
                                   {0, 2, colors.signed_low},
                                   {1, 0, colors.signed_high},
                                   {1, 1, colors.signed_low}}) {
    CHECK(cell(r, c, 4, 20) == fill);
    const bool above = fill == colors.signed_high;
    CHECK(cell(r, c, 37, above ? 2 : 37) != fill);
    CHECK(cell(r, c, 37, above ? 37 : 2) == fill);
  }
  // Values at the very ends are not clipped.
  CHECK(cell(2, 0, 37, 2) == colors.signed_high);
  CHECK(cell(2, 2, 37, 37) == colors.signed_low);
}

TEST_CASE("a flat matrix is drawn in mid-scale and says its value") {
  Session session = worked_example();
  FigureSpec spec = spec_of(FigureView::kMatrix, 9);
  spec.look.signed_range = {RangeMode::kAuto, 0, 0};
  spec.matrix.kind = MatrixKind::kQ;
  std::get<DirectSource>(session.problem.source).q[0].edit().setConstant(7);
  const Trace trace = run(session);
  const Figure figure = layout(session, trace, spec);
  CHECK(figure.matrices.front().range.flat);
  const PixelImage image = paint(figure);
  CHECK(pixel(image, figure.matrices.front().x + 4, figure.matrices.front().y + 4) ==
        palette(ThemeName::kLight).signed_zero);
  CHECK(std::ranges::any_of(figure.texts, [](const FigureText& t) { return t.text == "all 7"; }));
}

TEST_CASE("numbers appear when they fit") {
  const Session session = worked_example();
  const Trace trace = run(session);
  CHECK(layout(session, trace, spec_of(FigureView::kMatrix, 40)).matrices.front().numbers);
  CHECK(layout(session, trace, spec_of(FigureView::kMatrix, 32)).matrices.front().numbers);
  CHECK_FALSE(layout(session, trace, spec_of(FigureView::kMatrix, 16)).matrices.front().numbers);
  FigureSpec spec = spec_of(FigureView::kMatrix, 40);
  spec.look.decimals = 6;
  CHECK_FALSE(layout(session, trace, spec).matrices.front().numbers);
  const Figure head = layout(session, trace, spec_of(FigureView::kHead, 40));
  CHECK(find(head, MatrixKind::kScores).integers);
  CHECK_FALSE(find(head, MatrixKind::kAttn).integers);
}

TEST_CASE("a transparent figure has no background") {
  const Session session = worked_example();
  const Trace trace = run(session);
  FigureSpec spec = spec_of(FigureView::kMatrix);
  CHECK(pixel(paint(layout(session, trace, spec)), 1, 1) == palette(ThemeName::kLight).stage);
  spec.transparent = true;
  CHECK(pixel(paint(layout(session, trace, spec)), 1, 1).a == 0);
}

TEST_CASE("PNG keeps straight pixels") {
  std::vector<std::uint8_t> rgba;
  for (int i = 0; i < 6; ++i) rgba.insert(rgba.end(), {static_cast<std::uint8_t>(40 * i), 7, 255, 255});
  const Result<Bytes> png = png_bytes(3, 2, rgba);
  REQUIRE(png.ok());
  Result<PixelImage> image = decode_png(png.value());
  REQUIRE(image.ok());
  CHECK(image.value().width == 3);
  CHECK(image.value().height == 2);
  CHECK(image.value().rgba == rgba);

  const std::vector<std::uint8_t> clear = {200, 100, 0, 128, 1, 2, 3, 0};
  const Result<Bytes> second = png_bytes(2, 1, clear);
  REQUIRE(second.ok());
  image = decode_png(second.value());
  REQUIRE(image.ok());
  for (std::size_t i = 0; i < 4; ++i) CHECK(std::abs(image.value().rgba[i] - clear[i]) <= 1);
  CHECK(image.value().rgba[7] == 0);

  CHECK_FALSE(png_bytes(0, 5, rgba).ok());
  CHECK_FALSE(png_bytes(100, 100, rgba).ok());
  CHECK_FALSE(decode_png({}).ok());
  CHECK_FALSE(decode_png(std::span(png.value()).first(png.value().size() / 2)).ok());
}
