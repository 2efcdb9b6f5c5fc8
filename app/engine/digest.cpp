#include "app/engine/digest.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "core/attention/given_weights.h"
#include "core/attention/kernels/row_summary.h"
#include "core/attention/streamed_head.h"
#include "core/attention/streamed_pass.h"

namespace qkv {

namespace {

FiniteExtent extent_of(const Trace& trace, MatrixId id) {
  FiniteExtent extent;
  const auto source = trace.source(id);
  if (!source) return extent;
  if (source->data() != nullptr) {
    const Index cells = source->rows() * source->cols();
    const FloatExtent all = float_extent(source->data(), cells);
    if (all.all_finite && cells > 0) return {all.low, all.high, cells, 0, 0, 0};
  }
  for_each_strip(*source, [&](Index, const ConstMatrixRef& strip) { extent = merge(extent, finite_extent(strip)); });
  return extent;
}

// Of what ALiBi adds: nothing to a query's own key, most in a corner.
FiniteExtent alibi_extent(const Trace& trace, int head) {
  FiniteExtent extent;
  const auto source = trace.source({MatrixKind::kAlibi, head});
  if (!source) return extent;
  const Index last = source->rows() - 1, shift = query_shift(trace.problem.options, source->rows(), source->cols());
  for (const Index row : {Index{0}, last, std::clamp<Index>(-shift, 0, last)}) {
    Matrix cells(1, source->cols());
    source->read({row, 0, 1, source->cols()}, cells);
    extent = merge(extent, finite_extent(cells));
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

void digest_values(const Trace& trace, int head, HeadDigest& result) {
  const MatrixId outputs = {MatrixKind::kHeadsOut, head};
  // What reads them while they are being computed gets NaN for the rest.
  if (trace.find(outputs) != nullptr) result.outputs = extent_of(trace, outputs);
  result.values = result.outputs;
  for (const MatrixKind kind : {MatrixKind::kQ, MatrixKind::kK, MatrixKind::kV}) {
    result.values = merge(result.values, extent_of(trace, {kind, head}));
  }
}

HeadDigest digest_streamed(const Trace& trace, int head, bool refining) {
  HeadDigest result;
  const StreamedHead& stream = *trace.streams[static_cast<std::size_t>(head)];
  result.weights = seen_extent(stream, MatrixKind::kAttn);
  result.scores = merge(seen_extent(stream, MatrixKind::kScores), seen_extent(stream, MatrixKind::kScaled));
  digest_values(trace, head, result);
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
  digest_values(trace, head, result);
  return result;
}

// From rows that are digested.
HeadDigest digest_kernel_head(const Trace& trace, int head, std::vector<RowDigest> rows) {
  HeadDigest result;
  HeadStatsSum stats(query_shift(trace.problem.options, trace.shapes.nq, trace.shapes.nk));
  for (const RowDigest& row : rows) {
    stats.add(row.weights);
    result.weights = merge(result.weights, row.visible);
    result.scores = merge(result.scores, row.scores);
    if (row.row_sum_off > result.worst_row_sum) result.worst_row_sum = row.row_sum_off;
  }
  result.stats = stats.value();
  result.scores = merge(result.scores, alibi_extent(trace, head));
  digest_values(trace, head, result);
  result.rows = std::move(rows);
  return result;
}

// Rows of one head to be digested.
struct RowsTask {
  int head;
  Index first, count;
};

// What has to be read of a head, in parts for several threads.
void add_tasks(int head, const ChangedRows& changed, Index nq, std::vector<RowsTask>& tasks) {
  constexpr Index kPart = 128;
  if (changed.all) {
    for (Index row = 0; row < nq; row += kPart) tasks.push_back({head, row, std::min(kPart, nq - row)});
    return;
  }
  for (const Index row : changed.some) {
    const bool follows = !tasks.empty() && tasks.back().head == head && tasks.back().count < kPart &&
                         tasks.back().first + tasks.back().count == row;
    if (follows) {
      ++tasks.back().count;
    } else {
      tasks.push_back({head, row, 1});
    }
  }
}

using Share = std::function<void(std::ptrdiff_t tasks, const std::function<void(std::ptrdiff_t, int)>& work)>;

// The heads of the float32 path that `known` does not have.
void digest_kernels(const Trace& trace, const Share& share, TraceDigest* previous, const UpdateReport& report,
                    const std::vector<bool>& known, TraceDigest& result) {
  std::vector<std::vector<RowDigest>> rows(trace.kernels.size());
  std::vector<RowsTask> tasks;
  for (std::size_t h = 0; h < rows.size(); ++h) {
    if (known[h]) continue;
    const auto nq = static_cast<std::size_t>(trace.shapes.nq);
    const bool keeps =
        previous && h < report.weights.size() && h < previous->heads.size() && previous->heads[h].rows.size() == nq;
    if (keeps) rows[h] = std::move(previous->heads[h].rows);
    rows[h].resize(nq);
    add_tasks(static_cast<int>(h), keeps ? report.weights[h] : ChangedRows{true, {}}, trace.shapes.nq, tasks);
  }
  share(std::ssize(tasks), [&](std::ptrdiff_t n, int) {
    const RowsTask& task = tasks[static_cast<std::size_t>(n)];
    digest_rows(trace, task.head, task.first, task.count, rows[static_cast<std::size_t>(task.head)]);
  });
  share(std::ssize(rows), [&](std::ptrdiff_t head, int) {
    const auto h = static_cast<std::size_t>(head);
    if (!known[h]) result.heads[h] = digest_kernel_head(trace, static_cast<int>(head), std::move(rows[h]));
  });
}

}  // namespace

TraceDigest digest(const Trace& trace, ThreadPool* pool, TraceDigest* previous, const UpdateReport& report) {
  TraceDigest result;
  result.hidden = count_hidden(trace);
  result.refining = is_refining(trace);
  result.heads.resize(trace.heads.size());
  std::vector<bool> known(trace.heads.size());
  for (std::size_t h = 0; h < known.size(); ++h) {
    known[h] = previous != nullptr && h < previous->heads.size() && h < report.same.size() && report.same[h];
    if (known[h]) result.heads[h] = std::move(previous->heads[h]);
  }
  const bool shares = pool != nullptr && estimated_flops(trace.shapes) > kMostFloat64Flops;
  const Share share = [&](std::ptrdiff_t tasks, const std::function<void(std::ptrdiff_t, int)>& work) {
    if (shares) {
      pool->run(tasks, work);
    } else {
      for (std::ptrdiff_t task = 0; task < tasks; ++task) work(task, 0);
    }
  };
  if (!trace.kernels.empty()) {
    digest_kernels(trace, share, previous, report, known, result);
  } else {
    share(std::ssize(trace.heads), [&](std::ptrdiff_t head, int) {
      const auto h = static_cast<std::size_t>(head);
      if (known[h]) return;
      result.heads[h] = !trace.streams.empty() ? digest_streamed(trace, static_cast<int>(head), result.refining)
                                               : digest_head(trace, static_cast<int>(head), result.hidden > 0);
    });
  }
  const auto add = [&result](ScaleGroup group, const FiniteExtent& extent) {
    FiniteExtent& total = result.extents[static_cast<std::size_t>(group)];
    total = merge(total, extent);
  };
  for (const HeadDigest& head : result.heads) {
    add(ScaleGroup::kWeights, head.weights);
    add(ScaleGroup::kScores, head.scores);
    add(ScaleGroup::kValues, head.values);
    add(ScaleGroup::kConcat, head.outputs);
    result.worst_row_sum = std::max(result.worst_row_sum, head.worst_row_sum);
  }
  for (const MatrixKind kind : kAllMatrixKinds) {
    // Concat is the outputs of the heads, and made only when somebody looks at it.
    const bool is_known = is_per_head(kind) || kind == MatrixKind::kKeep || kind == MatrixKind::kConcat;
    if (!is_known) add(scale_group(kind), extent_of(trace, {kind, 0}));
  }
  result.warnings = find_warnings(trace);
  return result;
}

}  // namespace qkv
