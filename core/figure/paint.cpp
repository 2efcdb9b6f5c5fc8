#include "core/figure/paint.h"

#include "core/figure/paint_cells.h"

namespace qkv {

void paint_figure(cairo_t* cr, const Figure& figure, const TextShaper& shaper) {
  if (!figure.transparent) {
    set_color(cr, palette(figure.theme).stage);
    cairo_rectangle(cr, 0, 0, figure.width, figure.height);
    cairo_fill(cr);
  }
  for (const FigureRect& rect : figure.rects) {
    rounded_rectangle(cr, rect.x, rect.y, rect.width, rect.height, rect.radius);
    set_color(cr, rect.color);
    cairo_fill(cr);
  }
  for (const FigureMatrix& matrix : figure.matrices) paint_matrix(cr, matrix, figure.theme, figure.decimals, shaper);
  for (const FigureBar& bar : figure.bars) paint_bar(cr, bar, figure.theme);
  for (const FigureText& text : figure.texts) {
    shaper.draw(cr, text.text, text.style, text.x, text.y, text.angle);
  }
}

}  // namespace qkv
