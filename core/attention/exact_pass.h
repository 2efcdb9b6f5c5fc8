// The forward pass in float64, every step rounded once when it is stored: what the float32 path is held to.
#pragma once

#include "core/attention/forward.h"

namespace qkv {

// Fills everything of a trace whose problem and shapes are set. False when stopped: the trace is then of no use.
bool exact_pass(Trace& trace, const StopFlag* stop);

}  // namespace qkv
