// Concat(head_1 … head_H)·W^O, and X·W for a projected source: products of wide matrices in the heads' colours.
#pragma once

#include "app/panels/matrix_view.h"

namespace qkv {

void draw_concat_tab(Ui& ui, const StageInput& in, StageState& state, ImVec2 min, ImVec2 max, ActionQueue& queue);

// X at the left, the head's part of W^Q, W^K, W^V above, its Q, K, V where they meet.
void draw_projection_tab(Ui& ui, const StageInput& in, StageState& state, ImVec2 min, ImVec2 max, ActionQueue& queue);

}  // namespace qkv
