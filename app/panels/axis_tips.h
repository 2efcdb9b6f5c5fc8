// What a heat map says of the token under the pointer: all of a label that has no room beside or above the cells.
#pragma once

#include <string>

#include "app/panels/matrix_view.h"

namespace qkv {

struct AxisTip {
  std::string token;     // as it is shown, whole
  std::string position;  // "Query 3 of 12"
  std::string stored;    // the raw token, where that is not what is shown; else empty
};
// Of entry `index` of `count` on an axis of tokens.
AxisTip axis_tip(const StageInput& in, Axis axis, Index index, Index count);

// Shows it where the pointer rests on the labels of a place that has so many rows and columns on screen.
void draw_axis_tips(Ui& ui, const StageInput& in, const StageState& state, const MatrixPlace& place, Index rows,
                    Index cols);

}  // namespace qkv
