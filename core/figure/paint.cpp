#include "core/figure/paint.h"

#include "core/figure/paint_cells.h"

namespace qkv {

void paint_figure(Canvas& canvas, const Figure& figure, const TextShaper& shaper) {
  if (!figure.transparent) {
    canvas.fill_rectangle({0, 0, figure.width, figure.height}, 0, palette(figure.theme).stage);
  }
  for (const FigureRect& rect : figure.rects) {
    canvas.fill_rectangle({rect.x, rect.y, rect.width, rect.height}, rect.radius, rect.color);
  }
  for (const FigureMatrix& matrix : figure.matrices) {
    paint_matrix(canvas, matrix, figure.theme, shaper);
  }
  for (const FigureBar& bar : figure.bars) paint_bar(canvas, bar, figure.theme);
  for (const FigureText& text : figure.texts) {
    canvas.write_text(text.text, text.style,
                      {text.x, text.y, text.angle, text.anchor, shaper.measure(text.text, text.style)});
  }
}

}  // namespace qkv
