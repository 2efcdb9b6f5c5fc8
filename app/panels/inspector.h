// The cell in focus, explained: its sum with real numbers, where its token looks, every head, full precision.
#pragma once

#include "app/panels/heads_tab.h"
#include "app/panels/stage.h"
#include "core/attention/explain.h"

namespace qkv {

// What is known of the cell in focus, worked out when it or the numbers change and not every frame: a row of a large
// head takes milliseconds.
struct InspectorState {
  std::optional<CellRef> cell;
  std::uint64_t version = 0;  // StageInput::version
  std::optional<Explanation> explanation;
  Matrix weights;  // [1, Nk] of the cell's query, where the cell is of attn or heads_out; else empty
};

// Fills the current ImGui child window.
void draw_inspector(Ui& ui, const StageInput& in, const StageState& state, InspectorState& inspector, HeadsState& heads,
                    ActionQueue& queue);

// "0.579 926 083 443": `digits` significant digits in groups of three behind the point.
std::string grouped_digits(double value, int digits);

}  // namespace qkv
