// The cells of a matrix as pixels, and the colour of each.
#pragma once

#include "core/figure/canvas.h"
#include "core/figure/colormap.h"
#include "core/figure/figure.h"

namespace qkv {

// Everything that the colour of a cell depends on. `matrix` must outlive it.
struct CellColors {
  const FigureMatrix& matrix;
  const Palette& colors;
  ColorTable table;

  CellColors(const FigureMatrix& m, ThemeName theme)
      : matrix(m), colors(palette(theme)), table(color_table(m.colormap, theme)) {}

  CellClass class_of(Index row, Index col) const {
    return classify(matrix.value(row, col), matrix.visible(row, col), matrix.range);
  }
  Color color_of(CellClass cell, float value) const;
};

inline constexpr double kHatchPeriod = 6, kHatchWidth = 1;  // units, of the lines on hidden cells

// How cells become pixels: cell i lies between edge(i) and edge(i + 1) on both axes.
struct CellPixels {
  double cell_w = 1, cell_h = 1;          // pixels, not necessarily whole
  int hatch_period = 6, hatch_width = 1;  // pixels, of the lines on hidden cells
  int left(Index col) const { return edge(col, cell_w); }
  int top(Index row) const { return edge(row, cell_h); }

 private:
  static int edge(Index i, double size);
};
// A pixels a unit.
CellPixels cell_pixels(const FigureMatrix& matrix, double pixels_per_unit);

// Part of the matrix, [first_row, last_row) × [first_col, last_col). The hatch runs on from part to part.
struct CellBlock {
  Index first_row = 0, last_row = 0, first_col = 0, last_col = 0;
};
OpaqueImage cell_image(const CellColors& look, const CellPixels& pixels, const CellBlock& block);

}  // namespace qkv
