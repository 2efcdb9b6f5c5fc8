// The cell in focus, explained: its sum with real numbers, where its token looks, every head, full precision.
#pragma once

#include "app/panels/heads_tab.h"
#include "app/panels/stage.h"

namespace qkv {

// Fills the current ImGui child window.
void draw_inspector(Ui& ui, const StageInput& in, const StageState& state, HeadsState& heads, ActionQueue& queue);

// "0.579 926 083 443": `digits` significant digits in groups of three behind the point.
std::string grouped_digits(double value, int digits);

}  // namespace qkv
