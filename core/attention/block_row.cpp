#include "core/attention/block_row.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qkv {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

BlockPlanes::BlockPlanes(Index rows, Index blocks)
    : rows_(rows), blocks_(blocks), cells_(static_cast<std::size_t>(kPlanes * rows * blocks)) {}

FloatBlock BlockPlanes::plane(int n) { return {cells_.data() + n * rows_ * blocks_, rows_, blocks_, blocks_}; }

KeyBlockOutput BlockPlanes::output(Index width) {
  return {width, {plane(0), plane(1), plane(2)}, {plane(3), plane(4), plane(5)}, plane(6), plane(7)};
}

BlockPlanes::Row BlockPlanes::row(CellKind kind, Index row) const {
  const auto at = [&](int n) { return cells_.data() + (n * rows_ + row) * blocks_; };
  if (kind == CellKind::kWeights) return {at(6), nullptr, at(7)};
  const int first = kind == CellKind::kScores ? 0 : 3;
  return {at(first), at(first + 1), at(first + 2)};
}

std::size_t BlockPlanes::bytes(Index rows, Index blocks) {
  return static_cast<std::size_t>(kPlanes * rows * blocks) * sizeof(float);
}

BlockRow::BlockRow(CellKind kind, Index blocks)
    : mean(static_cast<std::size_t>(blocks)),
      max(mean.size()),
      count(mean.size()),
      kind_(kind),
      sum_(mean.size()),
      min_(mean.size()) {
  clear();
}

void BlockRow::clear() {
  std::fill(sum_.begin(), sum_.end(), 0.0);
  std::fill(min_.begin(), min_.end(), kind_ == CellKind::kWeights ? 0 : kInfinity);
  std::fill(max.begin(), max.end(), -kInfinity);
  lowest = kInfinity;
  highest = -kInfinity;
}

void BlockRow::add(const BlockPlanes::Row& row, float factor) {
  for (std::size_t b = 0; b < sum_.size(); ++b) {
    sum_[b] += static_cast<double>(row.sum[b] * factor);
    max[b] = std::max(max[b], row.max[b] * factor);
  }
  for (std::size_t b = 0; row.min != nullptr && b < min_.size(); ++b) min_[b] = std::min(min_[b], row.min[b]);
}

void BlockRow::finish(const StreamedCells& cells, const Rect& part, Index side, std::span<const Index> counts) {
  for (std::size_t b = 0; b < sum_.size(); ++b) {
    count[b] = static_cast<float>(counts[b]);
    if (counts[b] == 0) continue;
    if (!std::isfinite(sum_[b])) {
      const Index first = static_cast<Index>(b) * side;
      reread(cells, {part.row, first, part.rows, std::min(side, part.cols - first)}, b);
      continue;
    }
    mean[b] = static_cast<float>(sum_[b] / static_cast<double>(counts[b]));
    lowest = std::min(lowest, min_[b]);
    highest = std::max(highest, max[b]);
  }
}

void BlockRow::reread(const StreamedCells& cells, const Rect& block, std::size_t b) {
  if (buffer_.rows() < block.rows || buffer_.cols() < block.cols) buffer_.resize(block.rows, block.cols);
  auto values = buffer_.topLeftCorner(block.rows, block.cols);
  const FloatBlock target = {buffer_.data(), block.rows, block.cols, buffer_.cols()};
  cells.read(kind_, block, target);
  cells.blank_hidden(block, target);
  const Index side = std::max(block.rows, block.cols);
  reduce_cells(values, side, Reduction::kMean, Eigen::Map<Matrix>(&mean[b], 1, 1));
  reduce_cells(values, side, Reduction::kMax, Eigen::Map<Matrix>(&max[b], 1, 1));
  count[b] = 0;
  for (Index r = 0; r < block.rows; ++r) {
    for (Index c = 0; c < block.cols; ++c) {
      if (std::isnan(values(r, c))) continue;
      ++count[b];
      if (!std::isfinite(values(r, c))) continue;
      lowest = std::min(lowest, values(r, c));
      highest = std::max(highest, values(r, c));
    }
  }
}

}  // namespace qkv
