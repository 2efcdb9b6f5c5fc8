#include "core/figure/cell_image.h"

#include <algorithm>
#include <cmath>

namespace qkv {
namespace {

// Fills the pixels of one cell. (left, top) is its corner in the whole matrix, `out` the corner in the image.
void fill_cell(const CellPixels& pixels, int left, int top, int width, int height, bool hatched, std::uint32_t fill,
               std::uint32_t line, std::uint32_t* out, std::ptrdiff_t stride) {
  for (int y = 0; y < height; ++y, out += stride) {
    if (!hatched) {
      std::fill_n(out, width, fill);
      continue;
    }
    for (int x = 0; x < width; ++x) {
      out[x] = (left + x + top + y) % pixels.hatch_period < pixels.hatch_width ? line : fill;
    }
  }
}

}  // namespace

Color CellColors::color_of(CellClass cell, float value) const {
  switch (cell) {
    case CellClass::kMasked:
      return colors.masked;
    case CellClass::kNan:
      return colors.nan_cell;
    case CellClass::kBelow:
    case CellClass::kMinusInf:
      return table.front();
    case CellClass::kAbove:
    case CellClass::kPlusInf:
      return table.back();
    case CellClass::kValue:
      break;
  }
  return table[static_cast<std::size_t>(table_index(matrix.range.position(value)))];
}

int CellPixels::edge(Index i, double size) { return static_cast<int>(std::lround(static_cast<double>(i) * size)); }

CellPixels cell_pixels(const FigureMatrix& matrix, double pixels_per_unit) {
  CellPixels pixels;
  pixels.cell_w = matrix.cell_w * pixels_per_unit;
  pixels.cell_h = matrix.cell_h * pixels_per_unit;
  pixels.hatch_period = std::max(3, static_cast<int>(std::lround(kHatchPeriod * pixels_per_unit)));
  pixels.hatch_width = std::max(1, static_cast<int>(std::lround(kHatchWidth * pixels_per_unit)));
  return pixels;
}

OpaqueImage cell_image(const CellColors& look, const CellPixels& pixels, const CellBlock& block) {
  const int x0 = pixels.left(block.first_col), y0 = pixels.top(block.first_row);
  OpaqueImage image{pixels.left(block.last_col) - x0, pixels.top(block.last_row) - y0, {}};
  image.pixels.resize(static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height));
  const std::uint32_t line = opaque_pixel(look.colors.masked_line);
  for (Index row = block.first_row; row < block.last_row; ++row) {
    const int top = pixels.top(row), height = pixels.top(row + 1) - top;
    std::uint32_t* out = image.pixels.data() + static_cast<std::ptrdiff_t>(top - y0) * image.width;
    for (Index col = block.first_col; col < block.last_col; ++col) {
      const CellClass cell = look.class_of(row, col);
      const std::uint32_t fill = opaque_pixel(look.color_of(cell, look.matrix.value(row, col)));
      const int left = pixels.left(col);
      fill_cell(pixels, left, top, pixels.left(col + 1) - left, height, cell == CellClass::kMasked, fill, line,
                out + (left - x0), image.width);
    }
  }
  return image;
}

}  // namespace qkv
