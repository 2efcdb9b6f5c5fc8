// Sums, least and largest of a row's cells in blocks of keys, taken while the cells are in cache.
#include "hwy/highway.h"

#if defined(QKV_SUMMARY_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_SUMMARY_INL_H
#undef QKV_SUMMARY_INL_H
#else
#define QKV_SUMMARY_INL_H
#endif

#include "core/attention/kernels/head_rows.h"
#include "core/attention/kernels/softmax_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

struct CellSummary {
  float sum, min, max;
};

// Of the columns [first, last) of a tile's row, those that `valid` hides left out.
HWY_INLINE CellSummary summarize_columns(const TileRow& row, Index first, Index last) {
  const F d;
  const V none = hn::Set(d, std::numeric_limits<float>::infinity());
  V sum = hn::Zero(d), low = none, high = hn::Neg(none);
  for (Index col = first / kStep * kStep; col < last; col += kStep) {
    const V cells = hn::Load(d, row.cells + col);
    if (row.valid == nullptr && col >= first && col + kStep <= last) {
      sum = hn::Add(sum, cells);
      low = hn::Min(low, cells);
      high = hn::Max(high, cells);
      continue;
    }
    const V at = hn::Iota(d, static_cast<float>(col));
    auto seen =
        hn::And(hn::Ge(at, hn::Set(d, static_cast<float>(first))), hn::Lt(at, hn::Set(d, static_cast<float>(last))));
    if (row.valid != nullptr) seen = hn::And(seen, hn::Ne(hn::Load(d, row.valid + col), hn::Zero(d)));
    sum = hn::Add(sum, hn::IfThenElseZero(seen, cells));
    low = hn::Min(low, hn::IfThenElse(seen, cells, none));
    high = hn::Max(high, hn::IfThenElse(seen, cells, hn::Neg(none)));
  }
  return {hn::GetLane(hn::SumOfLanes(d, sum)), hn::GetLane(hn::MinOfLanes(d, low)),
          hn::GetLane(hn::MaxOfLanes(d, high))};
}

// Calls visit(block, columns' summary) for each block of `width` keys that the row of the tile reaches into.
template <class Visit>
HWY_INLINE void for_each_block(const TileRow& row, Index width, const Visit& visit) {
  const Index end = row.key + row.last;
  for (Index key = row.key + row.first; key < end;) {
    const Index block = key / width, next = std::min((block + 1) * width, end);
    visit(block, summarize_columns(row, key - row.key, next - row.key));
    key = next;
  }
}

HWY_INLINE void add_summary(const BlockSummary& to, Index row, Index block, const CellSummary& cells) {
  if (to.sum) to.sum.row(row)[block] += cells.sum;
  if (to.min) to.min.row(row)[block] = std::min(to.min.row(row)[block], cells.min);
  if (to.max) to.max.row(row)[block] = std::max(to.max.row(row)[block], cells.max);
}

// Raw scores of query row `i`. Where scaled ones are only these times a factor, they are summed up from them.
HWY_INLINE void summarize_scores(const TileRow& row, Index i, const KeyBlockOutput& to, bool plain, float scale) {
  for_each_block(row, to.width, [&](Index block, const CellSummary& cells) {
    add_summary(to.scores, i, block, cells);
    if (!plain) return;
    const float low = cells.min * scale, high = cells.max * scale;
    const bool is_empty = cells.min > cells.max;  // 0·Inf is NaN
    if (!is_empty) add_summary(to.scaled, i, block, {cells.sum * scale, std::min(low, high), std::max(low, high)});
  });
}

// Scaled scores less `base`.
HWY_INLINE void summarize_scaled(const TileRow& row, Index i, const KeyBlockOutput& to, float base) {
  const auto count_of = [&row](Index first, Index last) {
    if (row.valid == nullptr) return last - first;
    return static_cast<Index>(
        std::count_if(row.valid + first, row.valid + last, [](float valid) { return valid != 0; }));
  };
  for_each_block(row, to.width, [&](Index block, CellSummary cells) {
    if (base != 0) {
      const Index first = std::max(block * to.width - row.key, row.first);
      const Index last = std::min((block + 1) * to.width - row.key, row.last);
      cells.sum += base * static_cast<float>(count_of(first, last));
      cells.min += base;
      cells.max += base;
    }
    add_summary(to.scaled, i, block, cells);
  });
}

// Weights with this exponent; hidden ones are 0. Earlier ones of a block are brought to it by a power of two.
HWY_INLINE void summarize_weights(const TileRow& row, Index i, const KeyBlockOutput& to, std::int32_t exponent,
                                  std::int32_t* block_exponents) {
  for_each_block(row, to.width, [&](Index block, const CellSummary& cells) {
    const float rescale = power_of_two(block_exponents[block] - exponent);
    block_exponents[block] = exponent;
    if (to.weights_sum) {
      float& sum = to.weights_sum.row(i)[block];
      sum = sum * rescale + cells.sum;
    }
    if (to.weights_max) {
      float& high = to.weights_max.row(i)[block];
      high = std::max(high * rescale, std::max(cells.max, 0.0f));
    }
  });
}

// Before the first key block of query row `i`.
inline void start_summary(const KeyBlockOutput& to, Index i, Index nk, std::int32_t* block_exponents) {
  const Index blocks = (nk + to.width - 1) / to.width;
  std::fill_n(block_exponents, blocks, kSmallestExponent);
  const auto fill = [&](const FloatBlock& block, float value) {
    if (block) std::fill_n(block.row(i), blocks, value);
  };
  for (const BlockSummary* summary : {&to.scores, &to.scaled}) {
    fill(summary->sum, 0);
    fill(summary->min, std::numeric_limits<float>::infinity());
    fill(summary->max, -std::numeric_limits<float>::infinity());
  }
  fill(to.weights_sum, 0);
  fill(to.weights_max, 0);
}

// After the last: weights with the row's own exponent.
inline void finish_summary(const KeyBlockOutput& to, Index i, Index nk, std::int32_t exponent,
                           const std::int32_t* block_exponents) {
  const Index blocks = (nk + to.width - 1) / to.width;
  for (Index block = 0; block < blocks; ++block) {
    const float rescale = power_of_two(block_exponents[block] - exponent);
    if (to.weights_sum) to.weights_sum.row(i)[block] *= rescale;
    if (to.weights_max) to.weights_max.row(i)[block] *= rescale;
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, once for each target
