#include "app/engine/row_digest.h"

#include <algorithm>
#include <cmath>

#include "core/attention/kernel_cells.h"
#include "core/attention/kernels/row_summary.h"

namespace qkv {
namespace {

FiniteExtent extent_of(const float* cells, Index count) {
  const FloatExtent extent = float_extent(cells, count);
  if (extent.all_finite) return {extent.low, extent.high, count, 0, 0, 0};
  return finite_extent(Eigen::Map<const Matrix>(cells, 1, count));
}

// Scaled scores of raw ones where nothing but the factor lies between.
std::optional<FiniteExtent> times(const FiniteExtent& extent, float scale) {
  FiniteExtent scaled = extent;
  scaled.low = extent.low * scale;
  scaled.high = extent.high * scale;
  if (scaled.low > scaled.high) std::swap(scaled.low, scaled.high);
  const bool stays = extent.nan == 0 && extent.infinite == 0 && std::isfinite(scaled.low) && std::isfinite(scaled.high);
  return stays ? std::optional(scaled) : std::nullopt;
}

// Some query rows of one head.
class RowReader {
 public:
  RowReader(const Trace& trace, int head)
      : trace_(trace),
        head_(head),
        kernel_(*trace.kernels[static_cast<std::size_t>(head)]),
        input_(head_input(kernel_)),
        shift_(query_shift(trace.problem.options, trace.shapes.nq, trace.shapes.nk)) {
    const bool adds = input_.scaling.softcap > 0 || input_.scaling.slope != 0 || input_.scaling.bias;
    is_plain_ = !adds;
  }

  void read(Index first, Index count, RowDigest* rows) {
    for (Index r = 0; r < count; ++r) read_weights(first + r, rows[r]);
    read_scores(first, count, rows);
  }

 private:
  Index keys() const { return trace_.shapes.nk; }
  bool is_visible(Index key) const { return input_.mask.key_valid == nullptr || input_.mask.key_valid[key] != 0; }

  void read_weights(Index row, RowDigest& digest) const {
    const RowSoftmax& stats = kernel_.rows[static_cast<std::size_t>(row)];
    digest = {};
    digest.weights.visible = stats.visible;
    if (stats.visible == 0) return;
    const float factor = normalizer(stats);
    const float* const cells = kernel_.weights.row(row).data();
    const KeyRange range = visible_range(input_.mask, row, keys());
    if (!std::isfinite(stats.sum)) return read_odd_weights(row, digest);
    WeightSummary summary;
    for (Index key = range.first; key < range.last;) {
      Index end = key;
      while (end < range.last && is_visible(end)) ++end;
      add_weights(cells + key, end - key, factor, summary);
      key = end + 1;
    }
    if (!(summary.positive > 0 && summary.high < kNoLow)) return read_odd_weights(row, digest);
    const float positive = summary.positive == kNoLow ? 0 : summary.positive;
    digest.visible = {summary.low, summary.high, stats.visible, 0, 0, positive};
    digest.weights.entropy = summary.entropy;
    place_weights(cells, factor, row, digest);
    digest.row_sum_off = std::abs(summary.sum - expected_row_sum(trace_, head_, row));
  }

  // Weights on the first key, on the query's own and on the one before it.
  void place_weights(const float* cells, float factor, Index row, RowDigest& digest) const {
    const Index own = row + shift_;
    digest.weights.first = cells[0] * factor;
    if (own >= 0 && own < keys()) digest.weights.own = cells[own] * factor;
    if (own >= 1 && own <= keys()) digest.weights.previous = cells[own - 1] * factor;
  }

  // A row with a NaN, or whose smallest weights are not told apart from 0.
  void read_odd_weights(Index row, RowDigest& digest) const {
    Matrix weights(1, keys()), keep(1, keys());
    KernelCells({std::shared_ptr<void>(), &kernel_}, MatrixKind::kAttn).read({row, 0, 1, keys()}, weights);
    const KeyRange range = visible_range(input_.mask, row, keys());
    for (Index key = 0; key < keys(); ++key) {
      keep(0, key) = key >= range.first && key < range.last && is_visible(key) ? 1.0F : 0.0F;
    }
    digest.visible = finite_extent(weights, keep);
    digest.weights.entropy = row_entropy({weights.data(), static_cast<std::size_t>(keys())});
    place_weights(weights.data(), 1, row, digest);
    digest.row_sum_off = std::abs(weights.cast<double>().sum() - expected_row_sum(trace_, head_, row));
  }

  void read_scores(Index first, Index count, RowDigest* rows) {
    const bool is_held = !kernel_.options.causal && !kernel_.options.window;
    if (!is_held || !is_plain_) raw_scores(first, count);
    for (Index r = 0; r < count; ++r) {
      const float* const raw = is_held && is_plain_ ? kernel_.scores.row(first + r).data() : strip_.row(r).data();
      rows[r].scores = extent_of(raw, keys());
      const auto scaled = is_plain_ ? times(rows[r].scores, input_.scaling.scale) : std::nullopt;
      if (scaled) {
        rows[r].scores = merge(rows[r].scores, *scaled);
        continue;
      }
      Matrix line = Eigen::Map<const Matrix>(raw, 1, keys());
      scale_cells(input_, {first + r, 0, 1, keys()}, block_of(line));
      rows[r].scores = merge(rows[r].scores, extent_of(line.data(), keys()));
    }
  }

  // Of all keys, to strip_: those that a mask hides are computed, the others are there.
  void raw_scores(Index first, Index count) {
    strip_.resize(count, keys());
    Index from = 0, to = keys();
    for (Index row = first; row < first + count; ++row) {
      const KeyRange range = visible_range(input_.mask, row, keys());
      from = std::max(from, range.first);
      to = std::min(to, range.last);
    }
    if (from >= to) from = to = 0;
    strip_.middleCols(from, to - from) = kernel_.scores.block(first, from, count, to - from);
    const FloatBlock block = block_of(strip_);
    score_cells(input_, {first, 0, count, from}, block_of(block, {0, 0, count, from}));
    score_cells(input_, {first, to, count, keys() - to}, block_of(block, {0, to, count, keys() - to}));
  }

  const Trace& trace_;
  int head_;
  const KernelHead& kernel_;
  HeadInput input_;
  Index shift_;
  bool is_plain_ = true;
  Matrix strip_;
};

}  // namespace

void digest_rows(const Trace& trace, int head, Index first, Index count, std::vector<RowDigest>& rows) {
  RowReader reader(trace, head);
  for (Index row = first; row < first + count; row += kStripRows) {
    reader.read(row, std::min(kStripRows, first + count - row), rows.data() + row);
  }
}

}  // namespace qkv
