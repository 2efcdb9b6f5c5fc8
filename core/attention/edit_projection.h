// Q, K and V of a projected source after an edit of X or of a weight matrix. Part of update().
#pragma once

#include <optional>
#include <vector>

#include "core/attention/kernel_pass.h"

namespace qkv {

// X, one of its weight matrices and the bias.
struct Projection {
  const SharedMatrix& x;  // [N, d_model]
  const SharedMatrix& w;  // [d_model, heads·width]
  const std::optional<SharedMatrix>& bias;
};

// The heads of `after`, given those of `before`: only rows of X and columns of W that differ are multiplied anew.
// Equal shapes. nullopt when stopped.
std::optional<std::vector<SharedMatrix>> edit_projection(const std::vector<SharedMatrix>& heads,
                                                         const Projection& before, const Projection& after,
                                                         const PassOptions& options);

}  // namespace qkv
