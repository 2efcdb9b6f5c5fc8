// A case's outputs held to float64.
#pragma once

#include "tests/bench/tensors.h"

namespace qkv::bench {

// The largest error of a sample of rows in every head (the first, the last and some between), as a share of the bound;
// up to 1 is right. Rounding errors of a sum of n terms add up as a random walk does, to √n·eps of its terms' size at
// most. With eps = 2^−24 and s the scaled scores of the row, the bound is
//   e_s = √d·eps·Σ|q·k|·scale                     for a score, of the key where that is most;
//   weight · (2·e_s + 32·eps)                     for a weight: exp turns a score's error into a relative one, the
//                                                 denominator has one too, exp and the division a few eps of their own;
//   4 · max|v| · √Σweight² · (e_s + √N·eps)       for O, a sum over N keys whose errors do not know of each other;
//   as much, with d_model for d in e_s, for a layer.
double worst_error(const Case& of, const Inputs& inputs, const Outputs& outputs);

}  // namespace qkv::bench
