#include "core/attention/option_maps.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/attention/position.h"
#include "core/attention/score_scaling.h"

namespace qkv {
namespace {

// `cell(i, j)` of a matrix [rows, cols], at the sampled rows and columns.
template <class Cell>
Matrix sampled_map(Index rows, Index cols, Cell cell) {
  const std::vector<Index> down = sampled(rows), across = sampled(cols);
  Matrix map(static_cast<Index>(down.size()), static_cast<Index>(across.size()));
  for (Index r = 0; r < map.rows(); ++r) {
    for (Index c = 0; c < map.cols(); ++c) {
      map(r, c) = cell(down[static_cast<std::size_t>(r)], across[static_cast<std::size_t>(c)]);
    }
  }
  return map;
}

}  // namespace

std::vector<Index> sampled(Index count, Index most) {
  const Index shown = std::min(count, most);
  std::vector<Index> places;
  places.reserve(static_cast<std::size_t>(shown));
  for (Index i = 0; i < shown; ++i) places.push_back(shown == 1 ? 0 : i * (count - 1) / (shown - 1));
  return places;
}

Matrix mask_map(const AttentionOptions& options, Index nq, Index nk) {
  return sampled_map(nq, nk, [&](Index i, Index j) {
    return mask_reason(options, nq, nk, i, j) == MaskReason::kVisible ? 1.0f : 0.0f;
  });
}

Matrix added_map(const AttentionOptions& options, const Shapes& shapes, int head) {
  const ScoreScaling scaling(options, shapes, head);
  return sampled_map(shapes.nq, shapes.nk, [&](Index i, Index j) {
    const ScaledSteps steps = scaling.steps(0, i, j);
    return static_cast<float>(steps.alibi + steps.bias);
  });
}

Matrix rope_map(const Rope& rope, Index positions, Index d_k) {
  return sampled_map(positions, d_k / 2, [&](Index position, Index pair) {
    return static_cast<float>(std::cos(static_cast<double>(position) * rope_frequency(rope, pair, d_k)));
  });
}

std::optional<ScoreSpan> score_span(const Trace& trace, int head) {
  const double scale = effective_scale(trace.problem.options, trace.shapes.d_k);
  ScoreSpan span{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  const std::shared_ptr<const MatrixSource> scores = trace.source({MatrixKind::kScores, head});
  Matrix cells(1, trace.shapes.nk);
  const Index most_rows = std::max<Index>(kMostMapCells, kMostSpanCells / trace.shapes.nk);
  for (const Index row : sampled(trace.shapes.nq, most_rows)) {
    scores->read({row, 0, 1, trace.shapes.nk}, cells);
    for (Index key = 0; key < trace.shapes.nk; ++key) {
      const double value = static_cast<double>(cells(0, key)) * scale;
      if (!std::isfinite(value)) continue;
      span.low = std::min(span.low, value);
      span.high = std::max(span.high, value);
    }
  }
  if (span.low > span.high) return std::nullopt;
  return span;
}

std::vector<double> weights_with(const Trace& trace, const AttentionOptions& options, int head, Index row) {
  const Shapes& shapes = trace.shapes;
  Matrix scores(1, shapes.nk);
  trace.source({MatrixKind::kScores, head})->read({row, 0, 1, shapes.nk}, scores);
  const auto keys = static_cast<std::size_t>(shapes.nk);
  std::vector<double> weights(keys);
  std::vector<std::uint8_t> keep(keys);
  for (std::size_t j = 0; j < keys; ++j) {
    const auto key = static_cast<Index>(j);
    weights[j] = static_cast<double>(scores(0, key));
    keep[j] = mask_reason(options, shapes.nq, shapes.nk, row, key) == MaskReason::kVisible;
  }
  ScoreScaling(options, shapes, head).apply(weights, row);
  softmax_row(weights, keep, weights, sink_of(options, head));
  return weights;
}

}  // namespace qkv
