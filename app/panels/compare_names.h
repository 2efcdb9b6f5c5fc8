// Which array of theirs is which matrix of ours, chosen in the Compare tab.
#pragma once

#include "app/panels/compare_tab.h"

namespace qkv {

// Draws a field for each matrix of ours; they scroll where `room` is less high. Returns the height used; a choice is
// compared anew.
float draw_compare_names(Ui& ui, const Computed& ours, CompareState& compare, ImVec2 at, ImVec2 room);

}  // namespace qkv
