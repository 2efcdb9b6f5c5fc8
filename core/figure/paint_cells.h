// The cells of a heat map on a canvas, and what is written on them.
#pragma once

#include "core/figure/canvas.h"
#include "core/figure/figure.h"

namespace qkv {

// Where shapes stay shapes, a matrix of up to kMostCellShapes cells is one rectangle a cell, and a larger one an image,
// of up to kMostImagePixels where its cells have several pixels: as many as units where that fits, so that viewers that
// smooth images smooth no more than the edges of cells.
inline constexpr Index kMostCellShapes = 900;
inline constexpr double kMostImagePixels = 1 << 24;
// Beyond that many cells no numbers or marks are written on such a matrix.
inline constexpr Index kMostMarkedCells = 1 << 16;

// Cells fill exactly cell_w × cell_h units, on pixels whole ones, with exactly the colour of the table; the corners of
// the whole are rounded.
void paint_matrix(Canvas& canvas, const FigureMatrix& matrix, ThemeName theme, const TextShaper& shaper);

// A colour bar with rounded ends.
void paint_bar(Canvas& canvas, const FigureBar& bar, ThemeName theme);

}  // namespace qkv
