// A matrix on screen: which cells of which numbers stand where.
#pragma once

#include <algorithm>
#include <cmath>

#include "app/panels/matrix_view.h"

namespace qkv {

inline constexpr float kMatrixCornerRadius = 3;

// The mapping between drawn cells and pixels.
struct MatrixCanvas {
  const MatrixPlace& place;
  const ShownCells& cells;
  Rect part;         // stored
  Index rows, cols;  // drawn, of the part
  AxisView& row_view;
  AxisView& col_view;
  const Picture* picture = nullptr;  // of cells that are not held

  // Follow the views, which change while the mouse pans or zooms.
  double cell_w() const { return place.size.x / col_view.visible(static_cast<double>(cols)); }
  double cell_h() const { return place.size.y / row_view.visible(static_cast<double>(rows)); }
  ImVec2 max() const { return {place.min.x + place.size.x, place.min.y + place.size.y}; }
  float x_of(double col) const { return place.min.x + static_cast<float>((col - col_view.first) * cell_w()); }
  float y_of(double row) const { return place.min.y + static_cast<float>((row - row_view.first) * cell_h()); }
  double col_at(float x) const { return col_view.first + (x - place.min.x) / cell_w(); }
  double row_at(float y) const { return row_view.first + (y - place.min.y) / cell_h(); }
  // Stored cell of a drawn one.
  CellRef cell(Index row, Index col) const;
  // Scrolls so that a stored cell is inside the viewport.
  void show(const CellRef& stored) const;
  // Drawn rectangle of a stored one, clipped to the viewport; false where nothing of it shows.
  bool box(const Rect& stored, ImVec2& lo, ImVec2& hi) const;
  // Of a cell that is drawn; NaN where it is not known.
  float value(const CellRef& cell) const;
  Index first_row() const { return std::max<Index>(0, static_cast<Index>(std::floor(row_view.first))); }
  Index first_col() const { return std::max<Index>(0, static_cast<Index>(std::floor(col_view.first))); }
  Index end_row() const { return std::min(rows, static_cast<Index>(std::ceil(row_at(max().y) - 1e-6))); }
  Index end_col() const { return std::min(cols, static_cast<Index>(std::ceil(col_at(max().x) - 1e-6))); }
  // Drawn cells of which something shows.
  Rect window() const { return {first_row(), first_col(), end_row() - first_row(), end_col() - first_col()}; }
};

MatrixCanvas make_canvas(StageState& state, const MatrixPlace& place, const ShownCells& cells);

// What a place shows, in which colours.
ShownCells cells_at(const StageInput& in, const MatrixPlace& place);
ColorRange range_at(const StageInput& in, const MatrixPlace& place);
const std::string& colormap_at(const StageInput& in, const MatrixPlace& place);

}  // namespace qkv
