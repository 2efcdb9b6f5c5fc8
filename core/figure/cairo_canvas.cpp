#include "core/figure/cairo_canvas.h"

#include <algorithm>
#include <numbers>

#include "core/figure/cairo_parts.h"

namespace qkv {
namespace {

void add_rectangle(cairo_t* cr, const CanvasBox& box, double radius) {
  const double r = std::min({radius, box.width / 2, box.height / 2});
  if (r <= 0) {
    cairo_rectangle(cr, box.x, box.y, box.width, box.height);
    return;
  }
  constexpr double kQuarter = std::numbers::pi / 2;
  const double right = box.x + box.width, bottom = box.y + box.height;
  cairo_new_sub_path(cr);
  cairo_arc(cr, right - r, box.y + r, r, -kQuarter, 0);
  cairo_arc(cr, right - r, bottom - r, r, 0, kQuarter);
  cairo_arc(cr, box.x + r, bottom - r, r, kQuarter, 2 * kQuarter);
  cairo_arc(cr, box.x + r, box.y + r, r, 2 * kQuarter, 3 * kQuarter);
  cairo_close_path(cr);
}

}  // namespace

void CairoCanvas::fill_rectangle(const CanvasBox& box, double radius, Color color) {
  add_rectangle(cr_, box, radius);
  set_color(cr_, color);
  cairo_fill(cr_);
}

void CairoCanvas::fill_polygons(std::span<const CanvasPolygon> polygons, Color color) {
  for (const CanvasPolygon& polygon : polygons) {
    cairo_new_sub_path(cr_);
    for (const CanvasPoint& point : polygon) cairo_line_to(cr_, point.x, point.y);
    cairo_close_path(cr_);
  }
  set_color(cr_, color);
  cairo_fill(cr_);
}

void CairoCanvas::begin_clip(const CanvasBox& box, double radius) {
  cairo_save(cr_);
  add_rectangle(cr_, box, radius);
  cairo_clip(cr_);
}

void CairoCanvas::end_clip() { cairo_restore(cr_); }

void CairoCanvas::paint_image(const OpaqueImage& image, const CanvasBox& box) {
  // Where it is in error, the context takes the error over, and whoever asks for its status reports it.
  const CairoSurfacePtr surface = surface_of(image);
  cairo_save(cr_);
  cairo_translate(cr_, box.x, box.y);
  cairo_scale(cr_, box.width / image.width, box.height / image.height);
  cairo_set_source_surface(cr_, surface.get(), 0, 0);
  cairo_pattern_set_filter(cairo_get_source(cr_), CAIRO_FILTER_NEAREST);
  cairo_paint(cr_);
  cairo_restore(cr_);
}

void CairoCanvas::write_text(std::string_view text, const TextStyle& style, const TextPlace& place) {
  shaper_->draw(cr_, text, style, place.x, place.y, place.angle);
}

}  // namespace qkv
