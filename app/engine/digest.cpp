#include "app/engine/digest.h"

#include <algorithm>
#include <cmath>

#include "core/attention/given_weights.h"
#include "core/attention/streamed_head.h"
#include "core/attention/streamed_pass.h"

namespace qkv {

namespace {

FiniteExtent extent_of(const Trace& trace, MatrixId id) {
  FiniteExtent extent;
  if (const auto source = trace.source(id)) {
    for_each_strip(*source, [&](Index, const ConstMatrixRef& strip) { extent = merge(extent, finite_extent(strip)); });
  }
  return extent;
}

// Extent of the visible weights, statistics and row sums, in one reading.
void digest_weights(const Trace& trace, int head, bool any_hidden, HeadDigest& result) {
  const std::vector<RowStats>& rows = trace.heads[static_cast<std::size_t>(head)].rows;
  HeadStatsSum stats(query_shift(trace.problem.options, trace.shapes.nq, trace.shapes.nk));
  const Matrix* keep = any_hidden ? &trace.keep.get() : nullptr;
  for_each_strip(*trace.source({MatrixKind::kAttn, head}), [&](Index first, const ConstMatrixRef& strip) {
    result.weights = merge(result.weights,
                           keep ? finite_extent(strip, keep->middleRows(first, strip.rows())) : finite_extent(strip));
    for (Index r = 0; r < strip.rows(); ++r) {
      const Index row = first + r, visible = rows[static_cast<std::size_t>(row)].visible;
      stats.add({strip.row(r).data(), static_cast<std::size_t>(strip.cols())}, row, visible);
      if (visible == 0) continue;
      const double off = std::abs(strip.row(r).cast<double>().sum() - expected_row_sum(trace, head, row));
      if (off > result.worst_row_sum) result.worst_row_sum = off;
    }
  });
  result.stats = stats.value();
}

FiniteExtent seen_extent(const StreamedHead& head, MatrixKind kind) {
  const CellExtent seen = head.extent(kind);
  return seen.low <= seen.high ? FiniteExtent{seen.low, seen.high, 1, 0, 0} : FiniteExtent{};
}

// Statistics and row sums of some rows: all of them would take as long as the pass.
void sample_rows(const Trace& trace, int head, HeadDigest& result) {
  constexpr Index kMostRows = 128;
  const Index nq = trace.shapes.nq, nk = trace.shapes.nk, rows = std::min(nq, kMostRows);
  const auto source = trace.source({MatrixKind::kAttn, head});
  HeadStatsSum stats(query_shift(trace.problem.options, nq, nk));
  Matrix weights(1, nk);
  for (Index n = 0; n < rows; ++n) {
    const Index row = (2 * n + 1) * nq / (2 * rows);
    const RowStats& of_row = trace.heads[static_cast<std::size_t>(head)].rows[static_cast<std::size_t>(row)];
    source->read({row, 0, 1, nk}, weights);
    stats.add({weights.data(), static_cast<std::size_t>(nk)}, row, of_row.visible);
    if (of_row.visible == 0) continue;
    const double off = std::abs(weights.cast<double>().sum() - expected_row_sum(trace, head, row));
    if (off > result.worst_row_sum) result.worst_row_sum = off;
  }
  result.stats = stats.value();
  result.sampled = rows < nq;
}

HeadDigest digest_streamed(const Trace& trace, int head, bool refining) {
  HeadDigest result;
  const StreamedHead& stream = *trace.streams[static_cast<std::size_t>(head)];
  result.weights = seen_extent(stream, MatrixKind::kAttn);
  result.scores = merge(seen_extent(stream, MatrixKind::kScores), seen_extent(stream, MatrixKind::kScaled));
  for (const MatrixKind kind : {MatrixKind::kQ, MatrixKind::kK, MatrixKind::kV, MatrixKind::kHeadsOut}) {
    const bool known = kind != MatrixKind::kHeadsOut || !refining;
    if (known) result.values = merge(result.values, extent_of(trace, {kind, head}));
  }
  if (!refining) sample_rows(trace, head, result);
  return result;
}

HeadDigest digest_head(const Trace& trace, int head, bool any_hidden) {
  HeadDigest result;
  digest_weights(trace, head, any_hidden, result);
  result.unnormalised_rows = count_unnormalised(trace, head);
  for (const MatrixKind kind : {MatrixKind::kScores, MatrixKind::kAlibi, MatrixKind::kScaled}) {
    result.scores = merge(result.scores, extent_of(trace, {kind, head}));
  }
  for (const MatrixKind kind : {MatrixKind::kQ, MatrixKind::kK, MatrixKind::kV, MatrixKind::kHeadsOut}) {
    result.values = merge(result.values, extent_of(trace, {kind, head}));
  }
  return result;
}

}  // namespace

TraceDigest digest(const Trace& trace, ThreadPool* pool, const TraceDigest* previous, const std::vector<bool>& same) {
  TraceDigest result;
  result.hidden = count_hidden(trace);
  result.refining = is_refining(trace);
  result.heads.resize(trace.heads.size());
  const auto work = [&](std::ptrdiff_t head, int) {
    const auto h = static_cast<std::size_t>(head);
    const bool is_known = previous != nullptr && h < previous->heads.size() && h < same.size() && same[h];
    result.heads[h] = is_known                 ? previous->heads[h]
                      : !trace.streams.empty() ? digest_streamed(trace, static_cast<int>(head), result.refining)
                                               : digest_head(trace, static_cast<int>(head), result.hidden > 0);
  };
  const auto heads = static_cast<std::ptrdiff_t>(trace.heads.size());
  if (pool != nullptr && estimated_flops(trace.shapes) > kMostFloat64Flops) {
    pool->run(heads, work);
  } else {
    for (std::ptrdiff_t head = 0; head < heads; ++head) work(head, 0);
  }
  const auto add = [&result](ScaleGroup group, const FiniteExtent& extent) {
    FiniteExtent& total = result.extents[static_cast<std::size_t>(group)];
    total = merge(total, extent);
  };
  for (const HeadDigest& head : result.heads) {
    add(ScaleGroup::kWeights, head.weights);
    add(ScaleGroup::kScores, head.scores);
    add(ScaleGroup::kValues, head.values);
    result.worst_row_sum = std::max(result.worst_row_sum, head.worst_row_sum);
  }
  for (const MatrixKind kind : kAllMatrixKinds) {
    if (!is_per_head(kind) && kind != MatrixKind::kKeep) add(scale_group(kind), extent_of(trace, {kind, 0}));
  }
  result.warnings = find_warnings(trace);
  return result;
}

}  // namespace qkv
