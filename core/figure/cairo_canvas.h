// Figures on Cairo's surfaces: pixels, and pages of PDF.
#pragma once

#include <cairo.h>

#include "core/figure/canvas.h"

namespace qkv {

class CairoCanvas : public Canvas {
 public:
  // `cr` is scaled by the caller. Both must outlive the canvas.
  CairoCanvas(cairo_t* cr, const TextShaper& shaper, double pixels_per_unit)
      : cr_(cr), shaper_(&shaper), pixels_per_unit_(pixels_per_unit) {}

  double pixels_per_unit() const override { return pixels_per_unit_; }
  void fill_rectangle(const CanvasBox& box, double radius, Color color) override;
  void fill_polygons(std::span<const CanvasPolygon> polygons, Color color) override;
  void begin_clip(const CanvasBox& box, double radius) override;
  void end_clip() override;
  void paint_image(const OpaqueImage& image, const CanvasBox& box) override;
  void write_text(std::string_view text, const TextStyle& style, const TextPlace& place) override;

 private:
  cairo_t* cr_;
  const TextShaper* shaper_;
  double pixels_per_unit_;
};

}  // namespace qkv
