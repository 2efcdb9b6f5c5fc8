// Whether an edit can be made in the place of the old numbers, and how much of them it touches. Part of update().
#pragma once

#include "core/attention/trace.h"

namespace qkv {

// False: everything has to be computed anew. `shapes` of the edited problem.
bool can_patch(const Trace& trace, const Problem& edited, const Shapes& shapes, Arithmetic arithmetic);

}  // namespace qkv
