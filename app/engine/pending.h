// What the window shows of a session while nothing of it is computed: what it was given, and room for the rest.
#pragma once

#include <memory>

#include "app/engine/engine.h"

namespace qkv {

// Shapes and inputs, and of every result only how many rows see how many keys. Looks at every number that is given
// once.
std::shared_ptr<const Computed> pending(const Session& session);

// Whether `computed` is one of those, not a first result.
bool is_pending(const Computed& computed);

}  // namespace qkv
