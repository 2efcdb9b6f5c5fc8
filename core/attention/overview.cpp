#include "core/attention/overview.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qkv {
namespace {

constexpr float kNothing = std::numeric_limits<float>::quiet_NaN();

Index blocks_of(Index cells, int level) { return (cells + (Index{1} << level) - 1) >> level; }

}  // namespace

int overview_level(Index rows, Index cols, Index most) {
  int level = 0;
  while (blocks_of(std::max(rows, cols), level) > most) ++level;
  return level;
}

Overview::Overview(Index rows, Index cols, int finest) : rows_(rows), cols_(cols), finest_(finest) {
  for (int level = finest;; ++level) {
    const Index r = blocks_of(rows, level), c = blocks_of(cols, level);
    const Matrix nothing = Matrix::Constant(r, c, kNothing);
    levels_.push_back({nothing, nothing, Matrix::Zero(r, c)});
    if (r <= 1 && c <= 1) return;
  }
}

void Overview::set_row(Index row, std::span<const float> mean, std::span<const float> max,
                       std::span<const float> count) {
  Level& base = levels_.front();
  for (Index c = 0; c < block_cols(); ++c) {
    const auto at = static_cast<std::size_t>(c);
    const bool any = count[at] > 0;
    base.mean(row, c) = any ? mean[at] : kNothing;
    base.max(row, c) = any ? max[at] : kNothing;
    base.count(row, c) = count[at];
  }
  for (std::size_t n = 1; n < levels_.size(); ++n) raise_row(levels_[n - 1], levels_[n], row >> n);
}

void Overview::raise_row(const Level& from, Level& to, Index row) {
  const Index last_row = std::min(2 * row + 2, from.mean.rows());
  for (Index c = 0; c < to.mean.cols(); ++c) {
    const Index last_col = std::min(2 * c + 2, from.mean.cols());
    double sum = 0, count = 0;
    float high = -std::numeric_limits<float>::infinity();
    for (Index r = 2 * row; r < last_row; ++r) {
      for (Index k = 2 * c; k < last_col; ++k) {
        const auto cells = static_cast<double>(from.count(r, k));
        if (cells == 0) continue;
        sum += static_cast<double>(from.mean(r, k)) * cells;
        count += cells;
        high = std::max(high, from.max(r, k));
      }
    }
    to.mean(row, c) = count > 0 ? static_cast<float>(sum / count) : kNothing;
    to.max(row, c) = count > 0 ? high : kNothing;
    to.count(row, c) = static_cast<float>(count);
  }
}

bool Overview::has(const Rect& rect, int level) const {
  if (level < finest_) return false;
  const Index side = Index{1} << std::min(level, finest_ + static_cast<int>(levels_.size()) - 1);
  const auto on_edge = [side](Index first, Index count, Index all) {
    return first % side == 0 && ((first + count) % side == 0 || first + count == all);
  };
  return on_edge(rect.row, rect.rows, rows_) && on_edge(rect.col, rect.cols, cols_);
}

void Overview::reduce(const Rect& rect, int level, Reduction how, MatrixRef out) const {
  // Beyond the last level there is one block as well.
  const int held = std::min(level - finest_, static_cast<int>(levels_.size()) - 1);
  const Level& from = levels_[static_cast<std::size_t>(held)];
  const Matrix& values = how == Reduction::kMax ? from.max : from.mean;
  out = values.block(rect.row >> (held + finest_), rect.col >> (held + finest_), out.rows(), out.cols());
}

std::size_t Overview::bytes() const {
  std::size_t cells = 0;
  for (const Level& level : levels_) cells += static_cast<std::size_t>(3 * level.mean.size());
  return cells * sizeof(float);
}

}  // namespace qkv
