// Which array of theirs is which matrix of ours, chosen in the Compare tab.
#pragma once

#include "app/panels/compare_tab.h"

namespace qkv {

// Draws a field for each matrix that is computed here. Returns the height used; a choice is compared anew.
float draw_compare_names(Ui& ui, const Problem& problem, const Shapes& shapes, CompareState& compare, ImVec2 at,
                         float width);

}  // namespace qkv
