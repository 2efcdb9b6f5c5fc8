// The cells of a heat map as pixels, and what is written on them.
#pragma once

#include <cairo.h>

#include "core/figure/figure.h"

namespace qkv {

// Cells fill exactly cell_w × cell_h pixels with exactly the colour of the table; the corners of the whole are rounded.
void paint_matrix(cairo_t* cr, const FigureMatrix& matrix, ThemeName theme, int decimals, const TextShaper& shaper);

// A colour bar with rounded ends.
void paint_bar(cairo_t* cr, const FigureBar& bar, ThemeName theme);

void rounded_rectangle(cairo_t* cr, double x, double y, double width, double height, double radius);
void set_color(cairo_t* cr, Color color);

}  // namespace qkv
