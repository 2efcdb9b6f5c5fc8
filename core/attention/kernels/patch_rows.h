// Adds what edited keys change to output rows, on the best SIMD target.
#pragma once

#include <cstdint>
#include <span>

#include "core/attention/kernels/views.h"

namespace qkv {

// One key before and after its edit, as some query rows see it.
struct KeyPatch {
  const double *value_before = nullptr, *value_after = nullptr;    // [d_v]
  const double *weight_before = nullptr, *weight_after = nullptr;  // [rows], not normalized; 0 and 0 = untouched
};

// Σ weights of a row before and after: `after` NaN leaves its output as it is.
struct SumPatch {
  double before = 0, after = 0;
};

// out + rest, the output and what it was rounded by, from Σ weights·V / Σ weights before to the same after. Σ weights·V
// is the two times sum.before, and each key adds weight_after · value_after − weight_before · value_before.
struct RowsPatch {
  std::span<const SumPatch> sums;  // of each row
  std::span<const KeyPatch> keys;
  FloatBlock out, rest;  // [rows, d_v]; finite
};
void patch_rows_of(const RowsPatch& patch);

}  // namespace qkv
