// Figures as SVG, in which text stays text: Cairo's own would turn it into outlines.
#pragma once

#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/figure/canvas.h"

namespace qkv {

// Each line of text is one <text> element with its family, size and weight, placed by its anchor, and as wide as it was
// measured (textLength) where a viewer has other fonts. Emoji are characters, drawn by the viewer's own font. Text that
// was cut has the whole of it in <title>.
class SvgCanvas : public Canvas {
 public:
  // width × height units, `scale` CSS pixels (1/96 inch) each.
  SvgCanvas(double width, double height, double scale, const TextShaper& shaper);

  double pixels_per_unit() const override { return 0; }
  void fill_rectangle(const CanvasBox& box, double radius, Color color) override;
  void fill_polygons(std::span<const CanvasPolygon> polygons, Color color) override;
  void begin_clip(const CanvasBox& box, double radius) override;
  void end_clip() override;
  void paint_image(const OpaqueImage& image, const CanvasBox& box) override;
  void write_text(std::string_view text, const TextStyle& style, const TextPlace& place) override;

  // The whole document; the canvas is empty afterwards. Errors: an image that could not be made.
  Result<std::string> take();

 private:
  std::string svg_;
  const TextShaper* shaper_;
  int clips_ = 0;
  std::optional<Error> problem_;
};

}  // namespace qkv
