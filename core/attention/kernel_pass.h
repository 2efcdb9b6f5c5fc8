// The forward pass in float32 on the SIMD kernels, and what it keeps for edits.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/attention/forward.h"
#include "core/attention/kernel_input.h"
#include "core/attention/kernels/head_kernel.h"

namespace qkv {

// What lets an edit of K or V redo only what it touches: `out` of the head to more digits than float32 has, and how far
// to trust them.
struct EditSums {
  Matrix rest;                    // [Nq, d_v] what `out` was rounded by: their sum has some 48 bits
  std::vector<double> magnitude;  // [Nq] Σ weight · largest |V| of the key: what bounds the rounding of Σ weights·V
  std::vector<double> high;       // [Nq] the largest magnitude since the row was last computed in full
  std::vector<double> high_sum;   // [Nq] the largest Σ weights since then
  std::vector<double> unit;       // [Nq] what Σ weights is multiplied by to be the denominator of RowStats
  Eigen::VectorXf values;         // [Nk] largest finite |V| of each key
};

// What the float32 path keeps of one query head. Not shared with anyone who writes.
struct KernelHead {
  SharedMatrix q;                       // [Nq, d_k], rotated where there is a rope
  std::shared_ptr<PackedKeyValues> kv;  // of the head's group
  AttentionOptions options;
  Shapes shapes;
  int head = 0;
  Matrix scores;                 // [Nq, Nk] raw; undefined in tiles that the mask hides whole
  Matrix weights;                // [Nq, Nk] not normalized
  Matrix out;                    // [Nq, d_v]
  std::vector<RowSoftmax> rows;  // Nq
  std::optional<EditSums> sums;  // made at the first edit of K or V
};

// What the kernels read of a head. Refers to it.
HeadInput head_input(const KernelHead& head);
// Where they write.
HeadOutput head_output(KernelHead& head);

// Fills everything of a trace whose problem and shapes are set. Heads of `buffers` lend their memory where it fits.
// False when stopped: the trace is then of no use.
bool kernel_pass(Trace& trace, const PassOptions& options, std::vector<std::shared_ptr<KernelHead>> buffers);

// The parts of it, for update() and streamed traces. Each false when stopped.
// out = left·factor + bias; `bias` [1, N].
bool project_rows(const Matrix& left, const Matrix& factor, const std::optional<SharedMatrix>& bias, Matrix& out,
                  const PassOptions& options);
bool project_all(Trace& trace, const PassOptions& options);
// Heads of Q or K, [n, d] each, as the kernels read them: turned where there is a rope. Heads share the angles. nullopt
// when stopped.
std::optional<std::vector<SharedMatrix>> rotated_heads(const std::vector<SharedMatrix>& heads,
                                                       const std::optional<Rope>& rope, const PassOptions& options);
// H_kv, of K turned where there is a rope. What `packed` holds and nobody shares lends its memory.
using PackedHeads = std::vector<std::shared_ptr<PackedKeyValues>>;
bool pack_keys_and_values(const Trace& trace, const PassOptions& options, PackedHeads& packed);
// Query rows of one head, redone by attend_rows().
struct RowTask {
  int head = 0;
  Index first = 0, count = 0;
};
bool run_rows(Trace& trace, const std::vector<RowTask>& rows, const PassOptions& options);
bool project_output(Trace& trace, const PassOptions& options);
// What the trace shows of a head: its lazy matrices, and of some rows the statistics and `out`, both of full size.
void present_cells(Trace& trace, int head);
void present_rows(Trace& trace, int head, Index first, Index count);
RowStats row_stats(const RowSoftmax& row, const std::optional<float>& sink);
// With denominator_unit(row), which is another one only where the largest score is.
RowStats row_stats(const RowSoftmax& row, double unit, const std::optional<float>& sink);
// exp(base − max) · 2^exponent of a row, in one exponent: either part alone can be beyond the range of float64.
double denominator_unit(const RowSoftmax& row);

// forward() of a problem whose shapes are known.
Result<Trace> fill_trace(const Problem& problem, const Shapes& shapes, const PassOptions& options,
                         std::vector<std::shared_ptr<KernelHead>> buffers);

}  // namespace qkv
