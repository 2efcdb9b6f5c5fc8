// What each attention option does, as small matrices and rows to draw beside its control.
#pragma once

#include <optional>
#include <vector>

#include "core/attention/forward.h"

namespace qkv {

// A side has at most this many cells; longer ones are sampled evenly, the first and the last among them.
inline constexpr Index kMostMapCells = 64;

// Which of `count` rows or columns a map shows, in order.
std::vector<Index> sampled(Index count, Index most = kMostMapCells);

// 1 = visible: what causal, align, window and key_valid leave. [≤ 64, ≤ 64]
Matrix mask_map(const AttentionOptions& options, Index nq, Index nk);

// What ALiBi and bias together add to the scores of a head. [≤ 64, ≤ 64] of [Nq, Nk]; the bias must have that shape.
Matrix added_map(const AttentionOptions& options, const Shapes& shapes, int head);

// The cosine of the angle that a rope turns each pair of columns by: rows = positions, columns = pairs.
// [≤ 64, ≤ 64] of [positions, d_k / 2]
Matrix rope_map(const Rope& rope, Index positions, Index d_k);

// The ends of what a head's scores are after the scale, before the cap; nullopt where none is finite. Visible or not.
// Of a head with more cells than this, the rows are sampled.
inline constexpr Index kMostSpanCells = Index{1} << 22;
struct ScoreSpan {
  double low = 0, high = 0;
};
std::optional<ScoreSpan> score_span(const Trace& trace, int head);

// The weights of a query row of the trace if it had these options' scale, softcap, ALiBi, bias, masks and sink; the
// rope stays the trace's. [Nk] in float64 from the float32 scores. `options` must fit the trace's shapes.
std::vector<double> weights_with(const Trace& trace, const AttentionOptions& options, int head, Index row);

}  // namespace qkv
