#include "app/panels/matrix_canvas.h"

#include <limits>
#include <utility>

#include "app/panels/lens.h"

namespace qkv {

CellRef MatrixCanvas::cell(Index row, Index col) const {
  if (place.transposed) std::swap(row, col);
  return {place.id, part.row + row, part.col + col};
}

void MatrixCanvas::show(const CellRef& stored) const {
  double row = static_cast<double>(stored.row - part.row), col = static_cast<double>(stored.col - part.col);
  if (place.transposed) std::swap(row, col);
  const auto reveal = [](AxisView& view, double count, double at) {
    view.first = std::clamp(view.first, at + 1 - view.visible(count), at);
    view.clamp(count);
  };
  reveal(row_view, static_cast<double>(rows), row);
  reveal(col_view, static_cast<double>(cols), col);
}

bool MatrixCanvas::box(const Rect& stored, ImVec2& lo, ImVec2& hi) const {
  double r = static_cast<double>(stored.row - part.row), c = static_cast<double>(stored.col - part.col);
  double rs = static_cast<double>(stored.rows), cs = static_cast<double>(stored.cols);
  if (place.transposed) std::swap(r, c), std::swap(rs, cs);
  lo = {std::max(x_of(c), place.min.x), std::max(y_of(r), place.min.y)};
  hi = {std::min(x_of(c + cs), max().x), std::min(y_of(r + rs), max().y)};
  return lo.x < hi.x && lo.y < hi.y;
}

float MatrixCanvas::value(const CellRef& cell) const {
  if (cells.held != nullptr) return (*cells.held)(cell.row, cell.col);
  const auto known = picture != nullptr ? picture->cell(cell.row, cell.col) : std::nullopt;
  return known.value_or(std::numeric_limits<float>::quiet_NaN());
}

MatrixCanvas make_canvas(StageState& state, const MatrixPlace& place, const ShownCells& cells) {
  const Rect part = place.part.rows > 0 ? place.part : Rect{0, 0, cells.rows, cells.cols};
  const Index rows = place.transposed ? part.cols : part.rows, cols = place.transposed ? part.rows : part.cols;
  AxisView& row_view = state.axes[place.rows];
  AxisView& col_view = state.axes[place.cols];
  row_view.clamp(static_cast<double>(rows));
  col_view.clamp(static_cast<double>(cols));
  return {place, cells, part, rows, cols, row_view, col_view, nullptr};
}

ShownCells cells_at(const StageInput& in, const MatrixPlace& place) {
  if (place.foreign == nullptr) return displayed_cells(in, place.id);
  const Matrix* values = place.foreign->values;
  return {values->rows(), values->cols(), values, nullptr};
}
ColorRange range_at(const StageInput& in, const MatrixPlace& place) {
  return place.foreign != nullptr ? place.foreign->range : shown_range(in, place.id);
}
const std::string& colormap_at(const StageInput& in, const MatrixPlace& place) {
  return place.foreign != nullptr ? place.foreign->colormap : shown_colormap(in, place.id);
}

}  // namespace qkv
