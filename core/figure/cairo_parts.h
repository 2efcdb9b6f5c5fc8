// What the files on Cairo share: owners of its objects, colours, pixels and bytes.
#pragma once

#include <cairo.h>

#include <memory>

#include "core/base/file.h"
#include "core/figure/canvas.h"

namespace qkv {

struct CairoSurfaceDeleter {
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
};
using CairoSurfacePtr = std::unique_ptr<cairo_surface_t, CairoSurfaceDeleter>;
struct CairoContextDeleter {
  void operator()(cairo_t* cr) const { cairo_destroy(cr); }
};
using CairoContextPtr = std::unique_ptr<cairo_t, CairoContextDeleter>;

void set_color(cairo_t* cr, Color color);

// Row `row` of an image surface: 32 bits a pixel, alpha first, premultiplied.
std::uint32_t* pixel_row(cairo_surface_t* surface, int row);
// The image as a surface, which may be in error.
CairoSurfacePtr surface_of(const OpaqueImage& image);

// A cairo_write_func_t that appends to the Bytes that `bytes` points to.
cairo_status_t append_bytes(void* bytes, const unsigned char* data, unsigned int length);

}  // namespace qkv
