// Sums, smallest and largest values of a row's cells in blocks of keys, while a tile of them is in cache.
#include "hwy/highway.h"

#if defined(QKV_BLOCK_SUMMARY_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_BLOCK_SUMMARY_INL_H
#undef QKV_BLOCK_SUMMARY_INL_H
#else
#define QKV_BLOCK_SUMMARY_INL_H
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
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
  const int shift = std::countr_zero(static_cast<std::uint64_t>(width));
  for (Index first = row.first; first < row.last;) {
    const Index block = (row.key + first) >> shift;
    const Index last = std::min(row.last, ((block + 1) << shift) - row.key);
    work(block, summarize(row, first, last));
    first = last;
  }
}

HWY_INLINE void add_block(const BlockSummary& to, Index row, Index block, float sum, float min, float max) {
  if (to.sum) to.sum.row(row)[block] += sum;
  if (to.min) to.min.row(row)[block] = std::min(to.min.row(row)[block], min);
  if (to.max) to.max.row(row)[block] = std::max(to.max.row(row)[block], max);
}

// Adds what a row sees of a tile of scores or scaled scores to row `to_row` of `to`.
HWY_INLINE void summarize_scores(const TileRow& row, Index width, const BlockSummary& to, Index to_row) {
  if (!to.sum && !to.min && !to.max) return;
  for_each_block(row, width, [&](Index block, const Summary& summary) {
    add_block(to, to_row, block, summary.sum(), summary.min(), summary.max());
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

// Adds what a row sees of a tile of scores to `to.scores`, and of these times `factor` to `to.scaled`.
HWY_INLINE void summarize_multiples(const TileRow& row, float factor, const KeyBlockOutput& to, Index to_row) {
  for_each_block(row, to.width, [&](Index block, const Summary& summary) {
    const bool is_empty = summary.min() > summary.max() && summary.sum() == 0;
    if (is_empty) return;  // infinities times 0 are NaN
    float sum = summary.sum() * factor;
    if (!std::isfinite(sum)) {
      sum = sum_multiples(row, factor, std::max(row.first, block * to.width - row.key),
                          std::min(row.last, (block + 1) * to.width - row.key));
    }
    const float low = summary.min(), high = summary.max();
    add_block(to.scores, to_row, block, summary.sum(), low, high);
    add_block(to.scaled, to_row, block, sum, std::min(low * factor, high * factor),
              std::max(low * factor, high * factor));
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

inline constexpr Index kWeighedTogether = 4;  // vectors

// Whether weigh_blocks takes the row: it sees all of the tile's blocks, and no other tile has a part of them.
HWY_INLINE bool has_whole_blocks(const TileRow& row, Index width) {
  return width >= kWeighedTogether * kStep && width <= kKeyBlock && row.valid == nullptr &&
         ((row.first | row.last) & (width - 1)) == 0;
}

// What a block's vectors come to, lane by lane.
struct BlockLanes {
  Summary scores;
  V scaled_sum, weights_sum, weights_max;
  HWY_INLINE BlockLanes() : scaled_sum(hn::Zero(F())), weights_sum(hn::Zero(F())), weights_max(hn::Zero(F())) {}
};

template <size_t... kI>
HWY_INLINE void weigh_and_add(float* cells, V by, const WeightExp& exp, BlockLanes& lanes, V& sum,
                              std::index_sequence<kI...> each) {
  const F d;
  V scaled[sizeof...(kI)], weights[sizeof...(kI)];
  ((weights[kI] = hn::Load(d, cells + static_cast<Index>(kI) * kStep)), ...);
  (lanes.scores.add(weights[kI]), ...);
  ((scaled[kI] = hn::Mul(weights[kI], by)), ...);
  ((lanes.scaled_sum = hn::Add(lanes.scaled_sum, scaled[kI])), ...);
  exp.all(scaled, weights, each);
  (hn::Store(weights[kI], d, cells + static_cast<Index>(kI) * kStep), ...);
  ((sum = hn::Add(sum, weights[kI])), ...);
  ((lanes.weights_sum = hn::Add(lanes.weights_sum, weights[kI])), ...);
  ((lanes.weights_max = hn::Max(lanes.weights_max, weights[kI])), ...);
}

// weigh_row and all summaries of a row that is plain and has whole blocks, in one go: rows of a tile are not all in the
// first cache. What a block had before is overwritten.
HWY_INLINE float weigh_blocks(const TileRow& row, float scale, std::int32_t exponent, const KeyBlockOutput& to,
                              Index to_row, std::int32_t* exponents, float* lane_sums) {
  const F d;
  const WeightExp exp(exponent);
  const V by = hn::Set(d, scale);
  const auto put = [to_row](const FloatBlock& plane, Index block, float value) {
    if (plane) plane.row(to_row)[block] = value;
  };
  float largest = -kInfinity;
  V sum = hn::Zero(d);
  Index block = (row.key + row.first) >> std::countr_zero(static_cast<std::uint64_t>(to.width));
  for (Index first = row.first; first < row.last; first += to.width, ++block) {
    BlockLanes lanes;
    for (Index col = first; col < first + to.width; col += kWeighedTogether * kStep) {
      weigh_and_add(row.cells + col, by, exp, lanes, sum, std::make_index_sequence<kWeighedTogether>());
    }
    const float low = lanes.scores.min(), high = lanes.scores.max();
    const float scaled_low = std::min(low * scale, high * scale), scaled_high = std::max(low * scale, high * scale);
    put(to.scores.sum, block, lanes.scores.sum());
    put(to.scores.min, block, low);
    put(to.scores.max, block, high);
    put(to.scaled.sum, block, hn::GetLane(hn::SumOfLanes(d, lanes.scaled_sum)));
    put(to.scaled.min, block, scaled_low);
    put(to.scaled.max, block, scaled_high);
    put(to.weights_sum, block, hn::GetLane(hn::SumOfLanes(d, lanes.weights_sum)));
    put(to.weights_max, block, hn::GetLane(hn::MaxOfLanes(d, lanes.weights_max)));
    exponents[block] = exponent;
    largest = std::max(largest, scaled_high);
  }
  hn::Store(sum, d, lane_sums);
  return largest;
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, once for each target
