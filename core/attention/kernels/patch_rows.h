// Adds what edited keys change to the running sums of output rows, on the best SIMD target.
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

// out = sums / Σ weights after sums += weight_after · value_after − weight_before · value_before of each key.
struct RowsPatch {
  Index rows = 0, d_v = 0;
  double* sums = nullptr;               // [rows, d_v]
  const double* normalizers = nullptr;  // [rows], 1 / Σ weights; NaN: the row's out is left as it is
  std::span<const KeyPatch> keys;
  FloatBlock out, shown;  // [rows, d_v] each: the same numbers in two places
};
void patch_rows_of(const RowsPatch& patch);

}  // namespace qkv
