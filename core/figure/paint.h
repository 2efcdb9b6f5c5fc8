// Paints figures and writes them as files: PNG, SVG and PDF.
#pragma once

#include "core/base/file.h"
#include "core/figure/canvas.h"
#include "core/figure/figure.h"

namespace qkv {

void paint_figure(Canvas& canvas, const Figure& figure, const TextShaper& shaper);

// Complete files, the same bytes for the same figure: nothing in them tells of the time, the machine or its locale.
// `scale` is the size of a unit: in pixels of PNG, and in CSS pixels, which are 1/96 inch, of SVG and PDF.
Result<Bytes> figure_png(const Figure& figure, const TextShaper& shaper, double scale = 1);
Result<Bytes> figure_svg(const Figure& figure, const TextShaper& shaper, double scale = 1);
// Errors: kBadInput for pages that readers do not show, with a scale at which the figure fits.
Result<Bytes> figure_pdf(const Figure& figure, const TextShaper& shaper, double scale = 1);
// Whole pixels that a length takes.
int pixels_of(double units, double scale);

inline constexpr double kPointsPerUnit = 0.75;    // of a PDF at scale 1: 72 points an inch
inline constexpr double kMostPagePoints = 14400;  // a side: what Acrobat shows, 5.08 m
inline constexpr double kMillimetresPerUnit = 25.4 / 96;

// Straight (not premultiplied) RGBA rows from the top as a PNG file; `rgba` has width·height·4 bytes.
Result<Bytes> png_bytes(int width, int height, std::span<const std::uint8_t> rgba);
Result<Bytes> png_bytes(const OpaqueImage& image);

// Pixels of a PNG, straight RGBA; for tests and comparisons.
Result<PixelImage> decode_png(std::span<const std::byte> png);

}  // namespace qkv
