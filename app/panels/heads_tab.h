// All heads at once: the weights of each on one colour scale, with what tells heads apart.
#pragma once

#include "app/panels/matrix_view.h"

namespace qkv {

enum class HeadOrder { kNumber, kEntropy, kPrevious, kFirst };

struct HeadsState {
  HeadOrder order = HeadOrder::kNumber;
};

// Head numbers in the order of the cards.
std::vector<int> ordered_heads(const TraceDigest& digest, HeadOrder order);

void draw_heads_tab(Ui& ui, const StageInput& in, StageState& state, HeadsState& heads, ImVec2 min, ImVec2 max,
                    ActionQueue& queue);

}  // namespace qkv
