// The forward pass of multi-head attention, keeping every intermediate.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "core/attention/matrix_id.h"
#include "core/attention/matrix_source.h"
#include "core/attention/softmax.h"
#include "core/attention/source.h"

namespace qkv {

// One query head. Values are computed in float64 and rounded once to float32.
struct HeadTrace {
  Matrix scores;               // [Nq, Nk] raw QKᵀ, of the rotated Q and K where there is a rope
  Matrix scaled;               // [Nq, Nk] after scale, softcap, ALiBi and bias, before masking
  Matrix attn;                 // [Nq, Nk] weights: rows sum to 1 less the sink, hidden cells exactly 0, dead rows 0
  Matrix out;                  // [Nq, d_v] attn·V; hidden V is never touched, not even NaN
  std::vector<RowStats> rows;  // Nq
};

// Every step of one computation. Immutable once made; shared between threads.
struct Trace {
  Problem problem;
  Shapes shapes;
  std::vector<SharedMatrix> q, k, v;  // H × [Nq, d_k], H_kv × [Nk, d_k], H_kv × [Nk, d_v]; not rotated
  Matrix keep;                        // [Nq, Nk], 1 = visible (float for the heat maps)
  std::vector<Matrix> alibi;          // H × [Nq, Nk], what ALiBi adds to the scores; empty where it is off
  std::vector<HeadTrace> heads;       // H
  Matrix concat;                      // [Nq, H·d_v]
  std::optional<Matrix> out;          // [Nq, d_out] from the float64 concat, where there is a W^O
  double seconds = 0;                 // wall time of the pass

  // The matrix, or nullptr where this computation has none (W^O absent, X of a direct source, head out of range).
  const Matrix* find(MatrixId id) const;
};

// Set from another thread to make a running pass return kCancelled.
using StopFlag = std::atomic<bool>;

// Computes every head from the float32 Q, K and V that the trace shows; from there on nothing is rounded before it
// is stored. Errors: as check_shapes; kCancelled when `stop` became true; kUnsupported
// when memory runs out.
Result<Trace> forward(const Problem& problem, const StopFlag* stop = nullptr);

// Q, K, V of a projected source in the layout of a direct one.
DirectSource project(const ProjectedSource& source, const Shapes& shapes);

// Floating-point operations of the pass, to decide where to run it.
double estimated_flops(const Shapes& shapes);

// What deserves a warning beside the numbers.
struct TraceWarnings {
  Index dead_rows = 0;    // query rows with no visible key (the mask is the same for every head)
  Index nan_inputs = 0;   // NaN or Inf cells in the matrices that a person edits; −Inf in a bias hides a key
  Index nan_outputs = 0;  // NaN cells in out, or in heads_out where there is no W^O
};
TraceWarnings find_warnings(const Trace& trace);

// What a row of weights adds up to but for rounding: 1 less the sink's part, 0 in a dead row. Head and row in range.
double expected_row_sum(const Trace& trace, int head, Index row);

}  // namespace qkv
