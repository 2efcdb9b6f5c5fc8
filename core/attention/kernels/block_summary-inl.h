// Sums, smallest and largest values of a row's cells in blocks of keys, while a tile of them is in cache.
#include "hwy/highway.h"

#if defined(QKV_BLOCK_SUMMARY_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_BLOCK_SUMMARY_INL_H
#undef QKV_BLOCK_SUMMARY_INL_H
#else
#define QKV_BLOCK_SUMMARY_INL_H
#endif

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/attention/kernels/head_rows.h"
#include "core/attention/kernels/softmax_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

class Summary {
 public:
  HWY_INLINE Summary() : sum_(hn::Zero(F())), min_(hn::Set(F(), kInfinity)), max_(hn::Set(F(), -kInfinity)) {}

  HWY_INLINE void add(V cells) {
    sum_ = hn::Add(sum_, cells);
    min_ = hn::Min(min_, cells);
    max_ = hn::Max(max_, cells);
  }
  HWY_INLINE void add(V cells, hn::Mask<F> seen) {
    sum_ = hn::Add(sum_, hn::IfThenElseZero(seen, cells));
    min_ = hn::Min(min_, hn::IfThenElse(seen, cells, hn::Set(F(), kInfinity)));
    max_ = hn::Max(max_, hn::IfThenElse(seen, cells, hn::Set(F(), -kInfinity)));
  }
  HWY_INLINE float sum() const { return hn::GetLane(hn::SumOfLanes(F(), sum_)); }
  HWY_INLINE float min() const { return hn::GetLane(hn::MinOfLanes(F(), min_)); }
  HWY_INLINE float max() const { return hn::GetLane(hn::MaxOfLanes(F(), max_)); }

 private:
  V sum_, min_, max_;
};

// Columns [first, last) of a tile's row, those that `valid` hides left out.
HWY_INLINE Summary summarize(const TileRow& row, Index first, Index last) {
  const F d;
  Summary summary;
  const auto seen = [&](Index col) {
    const V at = hn::Iota(d, static_cast<float>(col));
    const auto inside =
        hn::And(hn::Ge(at, hn::Set(d, static_cast<float>(first))), hn::Lt(at, hn::Set(d, static_cast<float>(last))));
    return row.valid == nullptr ? inside : hn::And(inside, hn::Ne(hn::Load(d, row.valid + col), hn::Zero(d)));
  };
  for (Index col = first / kStep * kStep; col < last; col += kStep) {
    const V cells = hn::Load(d, row.cells + col);
    if (row.valid == nullptr && col >= first && col + kStep <= last) {
      summary.add(cells);
    } else {
      summary.add(cells, seen(col));
    }
  }
  return summary;
}

// Calls work(block, summary) for the blocks of `width` keys that the row sees of the tile.
template <class Work>
HWY_INLINE void for_each_block(const TileRow& row, Index width, const Work& work) {
  for (Index first = row.first; first < row.last;) {
    const Index block = (row.key + first) / width;
    const Index last = std::min(row.last, (block + 1) * width - row.key);
    work(block, summarize(row, first, last));
    first = last;
  }
}

// Adds what a row sees of a tile of scores or scaled scores to row `to_row` of `to`.
HWY_INLINE void summarize_scores(const TileRow& row, Index width, const BlockSummary& to, Index to_row) {
  if (!to.sum && !to.min && !to.max) return;
  for_each_block(row, width, [&](Index block, const Summary& summary) {
    if (to.sum) to.sum.row(to_row)[block] += summary.sum();
    if (to.min) to.min.row(to_row)[block] = std::min(to.min.row(to_row)[block], summary.min());
    if (to.max) to.max.row(to_row)[block] = std::max(to.max.row(to_row)[block], summary.max());
  });
}

// Sum of the scores times `factor` of columns [first, last), for scores whose own sum is beyond float32.
inline float sum_multiples(const TileRow& row, float factor, Index first, Index last) {
  float sum = 0;
  for (Index col = first; col < last; ++col) {
    if (row.valid == nullptr || row.valid[col] != 0) sum += row.cells[col] * factor;
  }
  return sum;
}

// The same of the scores times `factor`.
HWY_INLINE void summarize_multiples(const TileRow& row, float factor, Index width, const BlockSummary& to,
                                    Index to_row) {
  if (!to.sum && !to.min && !to.max) return;
  for_each_block(row, width, [&](Index block, const Summary& summary) {
    const bool is_empty = summary.min() > summary.max() && summary.sum() == 0;
    if (is_empty) return;  // infinities times 0 are NaN
    const float low = summary.min() * factor, high = summary.max() * factor;
    float sum = summary.sum() * factor;
    if (!std::isfinite(sum)) {
      sum = sum_multiples(row, factor, std::max(row.first, block * width - row.key),
                          std::min(row.last, (block + 1) * width - row.key));
    }
    if (to.sum) to.sum.row(to_row)[block] += sum;
    if (to.min) to.min.row(to_row)[block] = std::min(to.min.row(to_row)[block], std::min(low, high));
    if (to.max) to.max.row(to_row)[block] = std::max(to.max.row(to_row)[block], std::max(low, high));
  });
}

// Adds the weights exp(s)·2^-exponent of a tile; `exponents`, of each block, are those of what is there already.
HWY_INLINE void summarize_weights(const TileRow& row, const KeyBlockOutput& to, Index to_row, std::int32_t exponent,
                                  std::int32_t* exponents) {
  for_each_block(row, to.width, [&](Index block, const Summary& summary) {
    const float rescale = power_of_two(exponents[block] - exponent);
    exponents[block] = exponent;
    if (to.weights_sum) {
      float& sum = to.weights_sum.row(to_row)[block];
      sum = sum * rescale + summary.sum();
    }
    if (to.weights_max) {
      float& max = to.weights_max.row(to_row)[block];
      max = std::max(max * rescale, summary.max());
    }
  });
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, once for each target
