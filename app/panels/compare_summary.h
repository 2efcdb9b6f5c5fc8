// What the Compare tab says below its pictures.
#pragma once

#include "app/panels/compare_tab.h"

namespace qkv {

// The wrong cells of one matrix, to click on, and the likely cause, within `width` from `at`. A click chooses the cell
// and its head.
void draw_compare_summary(Ui& ui, const CompareResult& result, TokenStyle tokens, std::size_t array, StageState& state,
                          CompareState& compare, ImVec2 at, float width);

}  // namespace qkv
