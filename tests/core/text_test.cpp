#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/figure/text.h"

using namespace qkv;

namespace {

const char* const kPrivateUse = "\xf3\xbf\xbf\xbd";  // U+FFFFD: no font has it

int ink(const PixelImage& image) {
  int count = 0;
  for (std::size_t i = 3; i < image.rgba.size(); i += 4) count += image.rgba[i] > 40;
  return count;
}

bool has_color(const PixelImage& image) {
  for (std::size_t i = 0; i + 3 < image.rgba.size(); i += 4) {
    const auto [low, high] = std::minmax({image.rgba[i], image.rgba[i + 1], image.rgba[i + 2]});
    if (high - low > 60) return true;
  }
  return false;
}

// Horizontal centre of the pixels that are drawn.
double center_of_ink(const PixelImage& image) {
  double sum = 0, count = 0;
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      const double a = image.rgba[(static_cast<std::size_t>(y) * image.width + x) * 4 + 3];
      sum += a * x;
      count += a;
    }
  }
  return sum / count;
}

}  // namespace

TEST_CASE("every script has its own ink, and not that of a missing character") {
  const TextShaper shaper;
  const TextStyle style{.size = 20};
  const PixelImage missing = shaper.render(kPrivateUse, style, 1);
  for (const char* text : {"A", "貓", "老鼠", "한", "か", "مرحبا", "नमस्ते", "ก็", "שלום", "e\u0301",        "ᵀ",
                           "ᴼ", "ₖ",  "√",    "∞",  "−",  "×",     "÷",    "→", "🐈",    "👩🏽‍🚀"}) {
    CAPTURE(text);
    const PixelImage image = shaper.render(text, style, 1);
    CHECK(ink(image) > 4);
    CHECK(image.rgba != missing.rgba);
  }
}

TEST_CASE("emoji are in colour, and digits are not") {
  const TextShaper shaper;
  CHECK(has_color(shaper.render("🐈🍎", {.size = 20}, 1)));
  for (const char* text : {"0123456789", "0.136", "−5", "3 × 3", "head 1 · 3 × 3", "#*"}) {
    CAPTURE(text);
    CHECK_FALSE(has_color(shaper.render(text, {.size = 20, .color = {0, 0, 0, 255}}, 1)));
  }
}

TEST_CASE("combining marks and shaping change what is drawn, not the number of columns") {
  const TextShaper shaper;
  const TextStyle style{.size = 20};
  CHECK(shaper.measure("e\u0301", style).width == doctest::Approx(shaper.measure("e", style).width).epsilon(0.05));
  CHECK(ink(shaper.render("e\u0301", style, 1)) > ink(shaper.render("e", style, 1)));
  // Joined Arabic letters are narrower than the same letters apart.
  CHECK(shaper.measure("ببب", style).width < 3 * shaper.measure("ب", style).width);
  // A joined family is one picture.
  CHECK(shaper.measure("👩‍👩‍👧", style).width < 1.5 * shaper.measure("👩", style).width);
}

TEST_CASE("a character that no font has shows its code point") {
  const TextShaper shaper;
  const TextStyle style{.size = 20};
  const PixelImage one = shaper.render(kPrivateUse, style, 1);
  const PixelImage other = shaper.render("\xf4\x80\x80\x81", style, 1);  // U+100001
  CHECK(ink(one) > 20);
  // An empty box would be the same for both.
  CHECK(one.rgba != other.rgba);
  CHECK(ink(shaper.render("\u200b", style, 1)) > 20);
}

TEST_CASE("labels are one line whatever they hold") {
  const TextShaper shaper;
  const TextStyle style{.size = 13};
  const double line = shaper.measure("ab", style).height;
  for (const std::string& text : {std::string("a\nb"), std::string("a\r\nb"), std::string("a\tb"),
                                  std::string("a\0b", 3), std::string("\x7f\x01"), std::string("a\u2028b\u2029c\u0085"),
                                  std::string("a\xff\xfe\x80"), std::string("\xe8\xb2"),
                                  std::string("\u202e"
                                              "abc")}) {
    const TextSize size = shaper.measure(text, style);
    CHECK(size.height < 1.6 * line);
    CHECK(size.width > 0);
    CHECK(ink(shaper.render(text, style, 1)) > 0);
  }
  CHECK(shaper.measure("", style).width == 0);
  CHECK(shaper.render("", style, 1).width == 1);
}

TEST_CASE("digits are tabular and sizes are pixels") {
  const TextShaper shaper;
  for (const double size : {9.0, 11.0, 13.0, 26.0}) {
    const TextStyle style{.size = size};
    CHECK(shaper.measure("1111", style).width == doctest::Approx(shaper.measure("8888", style).width));
    CHECK(shaper.measure("0", style).height > size);
    CHECK(shaper.measure("0", style).height < 1.6 * size);
  }
  CHECK(shaper.measure("m", {.size = 20, .bold = true}).width > shaper.measure("m", {.size = 20}).width);
}

TEST_CASE("a picture is the measured size times the scale") {
  const TextShaper shaper;
  for (const char* text : {"qkv 貓 🐈", "0.136"}) {
    const TextSize size = shaper.measure(text, {.size = 13});
    for (const double scale : {1.0, 1.5, 2.0}) {
      const PixelImage image = shaper.render(text, {.size = 13}, scale);
      CHECK(image.width == std::ceil(size.width * scale));
      CHECK(image.height == std::ceil(size.height * scale));
      CHECK(image.rgba.size() == static_cast<std::size_t>(image.width) * image.height * 4);
    }
  }
}

TEST_CASE("pixels are premultiplied and have the colour that was asked for") {
  const TextShaper shaper;
  const PixelImage image = shaper.render("█", {.size = 20, .color = {200, 100, 50, 255}}, 1);
  bool found = false;
  for (std::size_t i = 0; i < image.rgba.size(); i += 4) {
    const auto* p = &image.rgba[i];
    CHECK(std::max({p[0], p[1], p[2]}) <= p[3]);
    found = found || (p[0] == 200 && p[1] == 100 && p[2] == 50 && p[3] == 255);
  }
  CHECK(found);
}

TEST_CASE("long text ends in an ellipsis within its limit") {
  const TextShaper shaper;
  const std::string text = "Donaudampfschifffahrtsgesellschaftskapitän";
  const TextStyle free{.size = 13};
  for (const double limit : {40.0, 100.0, 140.0}) {
    const TextStyle limited{.size = 13, .max_width = limit};
    const TextSize size = shaper.measure(text, limited);
    CHECK(size.width <= limit);
    CHECK(size.width > limit - 20);
    // The dots stand at the right end.
    CHECK(shaper.render(text, limited, 1).rgba != shaper.render(text, free, 1).rgba);
    CHECK(shaper.measure("ab", limited).width == shaper.measure("ab", free).width);
  }
  const TextStyle limited{.size = 13, .max_width = 60};
  const std::string arabic = "والاستقلالية المستقلة للمستقبل";
  const TextSize size = shaper.measure(arabic, limited);
  CHECK(size.width <= 60);
  // Right-to-left text that is cut still fills its picture from end to end.
  CHECK(center_of_ink(shaper.render(arabic, limited, 1)) == doctest::Approx(size.width / 2).epsilon(0.3));
  CHECK(shaper.measure(std::string(100000, 'x'), limited).width <= 60);
}

TEST_CASE("the caret moves by what a person sees as one character") {
  const TextShaper shaper;
  const std::string text =
      "a"
      "e\u0301"
      "👩🏽‍🚀"
      "貓";
  const std::size_t stops[] = {0, 1, 4, 4 + std::string("👩🏽‍🚀").size(), text.size()};
  for (std::size_t i = 0; i + 1 < std::size(stops); ++i) {
    CHECK(shaper.move_caret(text, stops[i], 1) == stops[i + 1]);
    CHECK(shaper.move_caret(text, stops[i + 1], -1) == stops[i]);
  }
  CHECK(shaper.move_caret(text, text.size(), 1) == text.size());
  CHECK(shaper.move_caret(text, 0, -1) == 0);
  CHECK(shaper.move_caret("", 0, 1) == 0);
  // Characters that are shown as others keep their own lengths.
  const std::string controls =
      "a\n\xff"
      "b";
  for (std::size_t i = 0; i < controls.size(); ++i) {
    CHECK(shaper.move_caret(controls, i, 1) == i + 1);
    CHECK(shaper.move_caret(controls, i + 1, -1) == i);
  }
}

TEST_CASE("caret positions and pixels agree") {
  const TextShaper shaper;
  const TextStyle style{.size = 16};
  const std::string text = "ab 貓\nc";
  double last = -1;
  for (std::size_t i = 0;; i = shaper.move_caret(text, i, 1)) {
    const double x = shaper.caret_x(text, style, i);
    CHECK(x > last);
    CHECK(shaper.index_at_x(text, style, x + 0.5) == i);
    last = x;
    if (i == text.size()) break;
  }
  CHECK(shaper.caret_x(text, style, 0) == 0);
  CHECK(last == doctest::Approx(shaper.measure(text, style).width).epsilon(0.01));
  CHECK(shaper.index_at_x(text, style, -50) == 0);
  CHECK(shaper.index_at_x(text, style, 5000) == text.size());
  // Within right-to-left text the caret starts at the right.
  CHECK(shaper.caret_x("שלום", style, 0) > shaper.caret_x("שלום", style, std::string("שלום").size()));
}
