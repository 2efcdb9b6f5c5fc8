// Float32 attention of one head, a block of query rows at a time, on the best SIMD target of this processor.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/attention/kernels/views.h"

namespace qkv {

// From a raw score to the one that softmax sees, in this order: · scale, softcap, − slope·|i·step + shift − j|, + bias.
struct KernelScaling {
  float scale = 1;
  float softcap = 0;  // c > 0: c · tanh(s / c); 0 = none
  float slope = 0;    // of ALiBi; 0 = none
  FloatView bias;     // [Nq, Nk]; empty = none
  Index shift = 0;    // with `step`, what makes a query's row its position among the keys
  Index step = 1;     // more where the rows of Q are a sample of the queries
};

// Which keys a query sees; the query of row i stands at p = i·step + shift.
struct KernelMask {
  bool causal = false;  // j ≤ p
  Index window = 0;     // |p − j| < window; 0 = none
  Index shift = 0;
  const std::uint8_t* key_valid = nullptr;  // [Nk], 0 = hidden from all; nullptr = none is
  Index step = 1;
};

// Keys [first, last) of a query row, before key_valid hides some of them. Empty: first == last.
struct KeyRange {
  Index first = 0, last = 0;
};

inline KeyRange visible_range(const KernelMask& mask, Index row, Index nk) {
  const Index at = row * mask.step + mask.shift;
  Index first = 0, last = nk;
  if (mask.causal) last = std::min(last, at + 1);
  if (mask.window > 0) {
    first = std::max(first, at - mask.window + 1);
    last = std::min(last, at + mask.window);
  }
  first = std::clamp<Index>(first, 0, nk);
  return {first, std::clamp(last, first, nk)};
}

// K and V of one key/value head in the order in which the kernels read them; query heads of a group share it.
// Copies, so K and V need not outlive it. Reading is safe from many threads.
class PackedKeyValues {
 public:
  PackedKeyValues(FloatView k, FloatView v);  // [Nk, d_k] rotated where there is a rope, [Nk, d_v]; d up to 2^16
  ~PackedKeyValues();
  PackedKeyValues(const PackedKeyValues&) = delete;
  PackedKeyValues& operator=(const PackedKeyValues&) = delete;

  Index keys() const;
  Index d_k() const;
  Index d_v() const;
  // Others in their place, in the same memory where that is large enough: fresh pages cost as much as packing does.
  // Not while another thread reads.
  void assign(FloatView k, FloatView v);
  // Replaces one row, in O(d). Not while another thread reads.
  void set_key(Index key, const float* row);
  void set_value(Index key, const float* row);
  std::size_t bytes() const;  // held

  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// What one query head reads. Refers to matrices and key_valid: not longer than they live.
struct HeadInput {
  FloatView q;  // [Nq, d_k], rotated where there is a rope
  const PackedKeyValues* kv = nullptr;
  KernelScaling scaling;
  KernelMask mask;
  std::optional<float> sink;
};

// What the softmax of one row was made of. A visible weight is exp(scaled − base) · 2^−exponent / sum. The exponent is
// whole, so that a larger maximum met later rescales a sum exactly, and the order of tiles never shows in a digit.
struct RowSoftmax {
  float max = 0;   // largest visible scaled score, or the sink where that is more; 0 in a dead row
  float base = 0;  // 0, or `max` where that is so large that exponents alone would lose digits
  std::int32_t exponent = 0;
  double sum = 0;     // Σ exp(scaled − base)·2^−exponent over visible keys and the sink; NaN where a visible
                      // score is NaN or +Inf; 0 in a dead row
  Index visible = 0;  // visible keys; 0 = dead row
};

// Sum, smallest and largest of a row's visible cells in each block of `width` keys, [Nq, ⌈Nk/width⌉]. A block without a
// visible cell has sum 0, min +Inf, max −Inf; with a visible NaN its sum is NaN, and min and max may be anything.
struct BlockSummary {
  FloatBlock sum, min, max;
};

// For overviews that need no second pass. What is empty is not written; `width` 0 = nothing is.
struct KeyBlockOutput {
  Index width = 0;  // a power of two
  BlockSummary scores, scaled;
  // Without the division by the row's `sum`; 0 in a block without a visible cell. Anything in a row whose `sum` is NaN.
  FloatBlock weights_sum, weights_max;
};

// Where the results of all Nq rows go. What is empty is not written (and costs nothing where it can be left out).
struct HeadOutput {
  FloatBlock scores;           // [Nq, Nk] raw QKᵀ. Cells of tiles that the mask hides whole are left as they are
  FloatBlock weights;          // [Nq, Nk] hidden cells exactly 0, dead rows 0
  FloatBlock out;              // [Nq, d_v] weights·V; V of hidden keys never touched, not even NaN
  std::span<RowSoftmax> rows;  // Nq
  bool normalized = true;      // weights sum to 1 (less the sink); false: they lack the division by `sum`
  KeyBlockOutput blocks = {};
};

// Memory that one thread works in. Grows as needed; keep it from call to call.
class KernelScratch {
 public:
  KernelScratch();
  ~KernelScratch();
  KernelScratch(KernelScratch&&) noexcept;
  KernelScratch& operator=(KernelScratch&&) noexcept;

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// Query rows that are best handed to attend_rows at once.
Index preferred_row_block(const HeadInput& input, const HeadOutput& output);

// Whether a thread had better pack the keys and values of a group of heads and compute all rows of these itself, while
// they are in its own cache: where the work is small, and comes out even. `flops` of one of the `groups`.
bool computes_whole_groups(Index groups, double flops, int threads);

// Computes rows [first, first + count). Different rows may run on different threads, each with its own scratch.
// A cell's bits do not depend on how the rows are divided into calls.
void attend_rows(const HeadInput& input, Index first, Index count, const HeadOutput& output, KernelScratch& scratch);

// The same steps one at a time, for the cells of a rectangle, bit for bit as attend_rows has them:
// raw scores into `out` [rect.rows, rect.cols];
void score_cells(const HeadInput& input, const Rect& rect, FloatBlock out);
// raw scores to scaled ones, in place;
void scale_cells(const HeadInput& input, const Rect& rect, FloatBlock cells);
// scaled scores to normalized weights, in place; `rows` are those of the rectangle's rows.
void weigh_cells(const HeadInput& input, const Rect& rect, std::span<const RowSoftmax> rows, FloatBlock cells);

// The division that attend_rows leaves out where it is told to: weight · normalizer(row), 0 for a dead row.
inline float normalizer(const RowSoftmax& row) { return row.visible == 0 ? 0.0f : static_cast<float>(1 / row.sum); }

// What a logit in the denominator adds to the row's sum. The row has a visible key.
double sink_weight(float sink, const RowSoftmax& row);

// Name of the SIMD target that runs here, such as "AVX2".
const char* kernel_target();

}  // namespace qkv
