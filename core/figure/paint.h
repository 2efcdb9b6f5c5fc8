// Paints figures with Cairo, and writes pictures as PNG.
#pragma once

#include <cairo.h>

#include "core/base/file.h"
#include "core/figure/figure.h"

namespace qkv {

void paint_figure(cairo_t* cr, const Figure& figure, const TextShaper& shaper);

// The figure at one pixel a unit, as a complete PNG file.
Result<Bytes> figure_png(const Figure& figure, const TextShaper& shaper);

// Straight (not premultiplied) RGBA rows from the top as a PNG file; `rgba` has width·height·4 bytes.
Result<Bytes> png_bytes(int width, int height, std::span<const std::uint8_t> rgba);

// Pixels of a PNG, straight RGBA; for tests and comparisons.
Result<PixelImage> decode_png(std::span<const std::byte> png);

}  // namespace qkv
