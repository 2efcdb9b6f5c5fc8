// The cells of a matrix on screen as one heat map, drawn by the graphics card.
#pragma once

#include "app/panels/matrix_canvas.h"

namespace qkv {

// Blocks of cells in the place of those that are not held, as far as they are known; nullptr for held ones.
const Picture* picture_of(Ui& ui, const StageInput& in, const MatrixCanvas& canvas);

void submit_heatmap(Ui& ui, const StageInput& in, const MatrixCanvas& canvas);

}  // namespace qkv
