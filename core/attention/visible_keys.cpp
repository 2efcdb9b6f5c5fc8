#include "core/attention/visible_keys.h"

#include <algorithm>

namespace qkv {

VisibleKeys::VisibleKeys(const KernelMask& mask, Index nq, Index nk) : mask_(mask), nq_(nq), nk_(nk) {
  if (mask.key_valid == nullptr) return;
  valid_before_.reserve(static_cast<std::size_t>(nk) + 1);
  valid_before_.push_back(0);
  for (Index key = 0; key < nk; ++key) valid_before_.push_back(valid_before_.back() + (mask.key_valid[key] != 0));
}

Index VisibleKeys::valid(Index first, Index last) const {
  if (first >= last) return 0;
  if (valid_before_.empty()) return last - first;
  return valid_before_[static_cast<std::size_t>(last)] - valid_before_[static_cast<std::size_t>(first)];
}

bool VisibleKeys::sees(Index row, Index key) const { return count(row, key, key + 1) > 0; }

Index VisibleKeys::count(Index row, Index first, Index last) const {
  const KeyRange range = visible_range(mask_, row, nk_);
  return valid(std::max(first, range.first), std::min(last, range.last));
}

bool VisibleKeys::hides(const Rect& rect) const {
  Index count = 0;
  if (rect.rows > 0 && rect.cols > 0) count_blocks(rect, rect.cols, {&count, 1});
  return count == 0;
}

void VisibleKeys::count_blocks(const Rect& rect, Index width, std::span<Index> counts) const {
  // Both ends of the visible range only grow from row to row, so the first and the last row bound those between.
  const KeyRange top = visible_range(mask_, rect.row, nk_);
  const KeyRange bottom = visible_range(mask_, rect.row + rect.rows - 1, nk_);
  const Index seen_by_all = bottom.first, seen_until = top.last;
  for (std::size_t b = 0; b < counts.size(); ++b) {
    const Index first = rect.col + static_cast<Index>(b) * width;
    const Index last = std::min(first + width, rect.col + rect.cols);
    counts[b] = 0;
    if (last <= top.first || first >= bottom.last) continue;
    if (first >= seen_by_all && last <= seen_until) {
      counts[b] = rect.rows * valid(first, last);
      continue;
    }
    for (Index row = rect.row; row < rect.row + rect.rows; ++row) counts[b] += count(row, first, last);
  }
}

}  // namespace qkv
