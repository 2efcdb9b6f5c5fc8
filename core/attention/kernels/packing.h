// Matrices into panels, on the best SIMD target.
#pragma once

#include "core/attention/kernels/panels.h"

namespace qkv {

// Cell (c, r) of `panels` = cell (r, c) of `rows`.
void pack_transposed(FloatView rows, Panels& panels);
void pack(FloatView rows, Panels& panels);

// Whether no cell is NaN or infinite.
bool all_finite(FloatView rows);

}  // namespace qkv
