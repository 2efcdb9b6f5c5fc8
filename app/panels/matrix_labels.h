// What stands around the cells of a matrix on screen: its title and the labels of its rows and columns.
#pragma once

#include "app/panels/matrix_canvas.h"

namespace qkv {

void draw_row_labels(Ui& ui, const StageInput& in, const StageState& state, const MatrixCanvas& canvas);
void draw_col_labels(Ui& ui, const StageInput& in, const StageState& state, const MatrixCanvas& canvas);
// `cell_w`: pixels of a cell.
void draw_title(Ui& ui, const StageInput& in, const MatrixPlace& place, double cell_w);

}  // namespace qkv
