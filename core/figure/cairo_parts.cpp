#include "core/figure/cairo_parts.h"

#include <cstddef>
#include <cstring>
#include <exception>

namespace qkv {

void set_color(cairo_t* cr, Color color) {
  cairo_set_source_rgba(cr, color.r / 255.0, color.g / 255.0, color.b / 255.0, color.a / 255.0);
}

std::uint32_t* pixel_row(cairo_surface_t* surface, int row) {
  unsigned char* data = cairo_image_surface_get_data(surface);
  return reinterpret_cast<std::uint32_t*>(data +
                                          static_cast<std::ptrdiff_t>(row) * cairo_image_surface_get_stride(surface));
}

CairoSurfacePtr surface_of(const OpaqueImage& image) {
  CairoSurfacePtr surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24, image.width, image.height));
  if (cairo_surface_status(surface.get()) != CAIRO_STATUS_SUCCESS) return surface;
  const auto width = static_cast<std::size_t>(image.width);
  for (int y = 0; y < image.height; ++y) {
    std::memcpy(pixel_row(surface.get(), y), image.pixels.data() + static_cast<std::size_t>(y) * width,
                width * sizeof(std::uint32_t));
  }
  cairo_surface_mark_dirty(surface.get());
  return surface;
}

cairo_status_t append_bytes(void* bytes, const unsigned char* data, unsigned int length) {
  auto& out = *static_cast<Bytes*>(bytes);
  // Nothing may be thrown through Cairo's C code.
  try {
    const auto* first = reinterpret_cast<const std::byte*>(data);
    out.insert(out.end(), first, first + length);
  } catch (const std::exception&) {
    return CAIRO_STATUS_NO_MEMORY;
  }
  return CAIRO_STATUS_SUCCESS;
}

}  // namespace qkv
