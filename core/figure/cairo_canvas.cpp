#include "core/figure/cairo_canvas.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numbers>

namespace qkv {
namespace {

void set_color(cairo_t* cr, Color color) {
  cairo_set_source_rgba(cr, color.r / 255.0, color.g / 255.0, color.b / 255.0, color.a / 255.0);
}

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
  const CairoSurfacePtr surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24, image.width, image.height));
  if (cairo_surface_status(surface.get()) != CAIRO_STATUS_SUCCESS) {
    // The context takes the error over, and whoever asks for its status reports it.
    cairo_set_source_surface(cr_, surface.get(), 0, 0);
    return;
  }
  unsigned char* rows = cairo_image_surface_get_data(surface.get());
  const auto stride = static_cast<std::size_t>(cairo_image_surface_get_stride(surface.get()));
  const auto width = static_cast<std::size_t>(image.width);
  for (std::size_t y = 0; y < static_cast<std::size_t>(image.height); ++y) {
    std::memcpy(rows + y * stride, image.pixels.data() + y * width, width * sizeof(std::uint32_t));
  }
  cairo_surface_mark_dirty(surface.get());
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
