// Text through Pango: every script, shaping, right-to-left and emoji; a character that no font has shows
// its code point. For labels in the window and for figures.
#pragma once

#include <cairo.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/figure/color.h"

namespace qkv {

struct TextStyle {
  double size = 13;   // pixels
  bool bold = false;  // semibold
  Color color = {31, 35, 40, 255};
  double max_width = 0;  // pixels; longer text ends in "…"; 0 = no limit
  bool operator==(const TextStyle&) const = default;
};

struct TextSize {
  double width = 0, height = 0, baseline = 0;  // pixels; baseline from the top
};

// What is drawn of a text.
struct ShownText {
  std::string text;  // valid UTF-8 without control characters: they are shown by their pictures (␊, ␉)
  bool cut = false;  // it ends in "…" for max_width
  bool right_to_left = false;
  bool code_points = false;  // of characters that cannot be seen: "U+200B", where draw() has boxes
};

// Premultiplied-by-alpha RGBA, 8 bits each, rows from the top, no padding.
struct PixelImage {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgba;
};

// Inter, Noto Sans, Noto Sans CJK TC, sans-serif.
std::string_view text_families();

// Owns the font map and context that shaping needs; one per thread. Families: text_families(), then what fontconfig
// has; emoji in colour. Digits are tabular.
class TextShaper {
 public:
  TextShaper();
  ~TextShaper();
  TextShaper(TextShaper&&) noexcept;
  TextShaper& operator=(TextShaper&&) noexcept;

  TextSize measure(std::string_view text, const TextStyle& style) const;
  // One line, `scale` device pixels per pixel. Size = measure() · scale rounded up.
  PixelImage render(std::string_view text, const TextStyle& style, double scale) const;
  // For those who write text rather than draw it.
  ShownText shown(std::string_view text, const TextStyle& style) const;
  // Draws on a surface, (x, y) the upper left corner. `angle` in radians about it, clockwise. On pages it stays text,
  // as page_text.h says.
  void draw(cairo_t* cr, std::string_view text, const TextStyle& style, double x, double y, double angle = 0) const;

  // For a text field: x of the caret before byte `index`, and byte index of the caret at pixel x.
  double caret_x(std::string_view text, const TextStyle& style, std::size_t index) const;
  std::size_t index_at_x(std::string_view text, const TextStyle& style, double x) const;
  // Byte index of the next (direction 1) or previous (−1) place where a caret may stand.
  std::size_t move_caret(std::string_view text, std::size_t index, int direction) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qkv
