// Every step of one computation of attention, for every head.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "core/attention/head_stats.h"
#include "core/attention/lazy_matrix.h"
#include "core/attention/matrix_id.h"
#include "core/attention/matrix_source.h"
#include "core/attention/softmax.h"
#include "core/attention/source.h"

namespace qkv {

// What the numbers of a pass are computed in.
enum class Arithmetic {
  kAuto,     // kFloat64 where that costs milliseconds, kFloat32 beyond (see choose_arithmetic)
  kFloat64,  // every step in float64, rounded once when it is stored
  kFloat32,  // the SIMD kernels: within 4 float32 ulp of the largest value in play
};

// One query head.
struct HeadTrace {
  LazyMatrix scores;           // [Nq, Nk] raw QKᵀ, of the rotated Q and K where there is a rope
  LazyMatrix scaled;           // [Nq, Nk] after scale, softcap, ALiBi and bias, before masking
  LazyMatrix attn;             // [Nq, Nk] weights: rows sum to 1 less the sink, hidden cells exactly 0, dead rows 0
  LazyMatrix out;              // [Nq, d_v] attn·V; hidden V is never touched, not even NaN
  std::vector<RowStats> rows;  // Nq
};

struct KernelHead;
class StreamedHead;

// Immutable once made (but for update(), which takes it whole); shared between threads.
struct Trace {
  Problem problem;
  Shapes shapes;
  Arithmetic arithmetic = Arithmetic::kFloat64;  // never kAuto
  std::vector<SharedMatrix> q, k, v;             // H × [Nq, d_k], H_kv × [Nk, d_k], H_kv × [Nk, d_v]; not rotated
  LazyMatrix keep;                               // [Nq, Nk], 1 = visible (float for the heat maps)
  std::vector<LazyMatrix> alibi;  // H × [Nq, Nk], what ALiBi adds; empty where it is off or N² too large
  std::vector<HeadTrace> heads;   // H
  LazyMatrix concat;              // [Nq, H·d_v]
  std::optional<Matrix> out;      // [Nq, d_out], where there is a W^O
  double seconds = 0;             // wall time of the pass

  // Of kFloat32: H, what its lazy matrices are made from and update() changes. Empty otherwise.
  std::vector<std::shared_ptr<KernelHead>> kernels;
  // Of a streamed trace: H, what computes its N² matrices when they are read. Empty otherwise.
  std::vector<std::shared_ptr<StreamedHead>> streams;

  // The matrix, or nullptr where this computation has none (W^O absent, X of a direct source, head out of range; of
  // given weights there are attn and keep alone, see given_weights.h). A
  // streamed trace has no N² matrix, and until finish_streamed() neither heads_out, concat and out, nor of `rows` more
  // than `visible`.
  const Matrix* find(MatrixId id) const;
  // The same for readers of a part: makes no lazy matrix whole. Not longer than the trace lives.
  std::shared_ptr<const MatrixSource> source(MatrixId id) const;
};

// What deserves a warning beside the numbers.
struct TraceWarnings {
  Index dead_rows = 0;          // query rows with no visible key (the mask is the same for every head)
  Index nan_inputs = 0;         // NaN or Inf cells in the matrices that a person edits; −Inf in a bias hides a key
  Index nan_outputs = 0;        // NaN cells in out, or in heads_out where there is no W^O
  Index unnormalised_rows = 0;  // rows of given weights, over all heads, that do not sum to 1
};
TraceWarnings find_warnings(const Trace& trace);

HeadStats head_stats(const Trace& trace, int head);

// Calls visit(first_row, strip) for strips of whole rows of a matrix, top down, none of more than kStripRows rows.
inline constexpr Index kStripRows = 64;
template <class Visit>
void for_each_strip(const MatrixSource& source, Visit visit) {
  Matrix strip;
  for (Index first = 0; first < source.rows(); first += kStripRows) {
    const Index count = std::min(kStripRows, source.rows() - first);
    if (source.data() != nullptr) {
      visit(first,
            ConstMatrixRef(Eigen::Map<const Matrix>(source.data() + first * source.cols(), count, source.cols())));
    } else {
      strip.resize(count, source.cols());
      source.read({first, 0, count, source.cols()}, strip);
      visit(first, ConstMatrixRef(strip));
    }
  }
}

// Makes `keep` and `alibi` of a trace whose problem and shapes are set, for when they are looked at.
void set_lazy_masks(Trace& trace);

// Makes `concat` of a trace whose heads have their `out`, for when it is looked at.
void set_lazy_concat(Trace& trace);

// Hidden cells of the mask, of one head.
Index count_hidden(const Trace& trace);

// What a row of weights adds up to but for rounding: 1 less the sink's part, 0 in a dead row. Head and row in range.
double expected_row_sum(const Trace& trace, int head, Index row);

}  // namespace qkv
