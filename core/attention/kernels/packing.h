// Matrices into panels, on the best SIMD target.
#pragma once

#include "core/attention/kernels/panels.h"

namespace qkv {

// Cell (c, r) of `panels` = cell (r, c) of `rows`.
void pack_transposed(FloatView rows, Panels& panels);
// Cell (r, c) of the panels at `to`, which have as many rows, = cell (r, c) of `rows`. Whether none is NaN or infinite.
bool pack_panels(FloatView rows, float* to);

}  // namespace qkv
