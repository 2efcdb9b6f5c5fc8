// Matrices in panels of 16 columns, the order in which the kernels read a right factor on every SIMD target.
#pragma once

#include <vector>

#include "core/attention/kernels/aligned_buffer.h"
#include "core/attention/kernels/gemm.h"
#include "core/attention/kernels/head_kernel.h"

namespace qkv {

// Columns of a panel: one vector of AVX-512, two of AVX2, four of SSE4.
inline constexpr Index kPanel = 16;

constexpr Index round_up(Index value, Index unit) { return (value + unit - 1) / unit * unit; }
constexpr Index panels_of(Index cols) { return (cols + kPanel - 1) / kPanel; }

// [rows, cols]: cell (r, c) is at panel c / 16, row r, place c % 16. Columns beyond the last are 0.
struct Panels {
  Index rows = 0, cols = 0;
  AlignedBuffer cells;  // [panels][rows][16]

  // What was there is lost; memory that is large enough is kept.
  void resize(Index row_count, Index col_count);
  Index panel_stride() const { return rows * kPanel; }
  const float* panel(Index index) const { return cells.data() + index * panel_stride(); }
  float* at(Index row, Index col) { return cells.data() + col / kPanel * panel_stride() + row * kPanel + col % kPanel; }
};

// A value that is NaN or infinite. It must not meet the weight 0 of a hidden key, so the panels have 0 in its place.
struct NonFinite {
  Index key = 0, col = 0;
  float value = 0;
};

struct PackedKeyValues::Impl {
  Panels keys;                        // Kᵀ, [d_k, Nk]
  Panels values;                      // [Nk, d_v], finite
  std::vector<NonFinite> non_finite;  // by key, then column
};

struct PackedFactor::Impl {
  Panels factor;
};

}  // namespace qkv
