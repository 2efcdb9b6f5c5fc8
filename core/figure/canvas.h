// What a figure is painted on: pixels or a PDF page through Cairo, or the text of an SVG. Lengths in units of the
// figure, y downwards.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/figure/color.h"
#include "core/figure/text.h"

namespace qkv {

struct CanvasBox {
  double x = 0, y = 0, width = 0, height = 0;
};
struct CanvasPoint {
  double x = 0, y = 0;
};
using CanvasPolygon = std::vector<CanvasPoint>;

// Opaque pixels, 0xffRRGGBB, rows from the top.
struct OpaqueImage {
  int width = 0, height = 0;
  std::vector<std::uint32_t> pixels;
};
inline std::uint32_t opaque_pixel(Color c) {
  return std::uint32_t{0xff} << 24 | std::uint32_t{c.r} << 16 | std::uint32_t{c.g} << 8 | std::uint32_t{c.b};
}

// Where a line of text goes: (x, y) its upper left corner, `angle` in radians clockwise about it, `size` as measured,
// `anchor` the share of its width before the point that stays where a viewer has other fonts.
struct TextPlace {
  double x = 0, y = 0, angle = 0, anchor = 0;
  TextSize size;
};

class Canvas {
 public:
  virtual ~Canvas() = default;
  // Of a picture made of pixels; 0 where shapes stay shapes, at whatever size they are looked at.
  virtual double pixels_per_unit() const = 0;
  virtual void fill_rectangle(const CanvasBox& box, double radius, Color color) = 0;
  virtual void fill_polygons(std::span<const CanvasPolygon> polygons, Color color) = 0;
  // What is painted until end_clip() ends at this rectangle.
  virtual void begin_clip(const CanvasBox& box, double radius) = 0;
  virtual void end_clip() = 0;
  // Stretched over the box, each pixel with hard edges.
  virtual void paint_image(const OpaqueImage& image, const CanvasBox& box) = 0;
  virtual void write_text(std::string_view text, const TextStyle& style, const TextPlace& place) = 0;
};

}  // namespace qkv
