// Softmax of the rows of a tile of scores, one key block after the other.
#include "hwy/highway.h"

#if defined(QKV_SOFTMAX_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_SOFTMAX_TILE_INL_H
#undef QKV_SOFTMAX_TILE_INL_H
#else
#define QKV_SOFTMAX_TILE_INL_H
#endif

#include <limits>

#include "core/attention/kernels/scaling-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// What a row sees of a tile, in columns from the tile's first.
struct TileRow {
  float* cells;
  Index first, last;   // columns that the row sees but for those that `valid` hides; first < last
  const float* valid;  // of each column, 0 = hidden; nullptr = none is
  Index key;           // of column 0

  Index first_vector() const { return first / kStep * kStep; }
  Index last_vector() const { return (last + kStep - 1) / kStep * kStep; }
};

HWY_INLINE V hide(const TileRow& row, Index col, V scaled) {
  const F d;
  const V at = hn::Iota(d, static_cast<float>(col));
  auto seen = hn::And(hn::Ge(at, hn::Set(d, static_cast<float>(row.first))),
                      hn::Lt(at, hn::Set(d, static_cast<float>(row.last))));
  if (row.valid != nullptr) seen = hn::And(seen, hn::Ne(hn::Load(d, row.valid + col), hn::Zero(d)));
  return hn::IfThenElse(seen, scaled, hn::Set(d, -std::numeric_limits<float>::infinity()));
}

template <bool kPlain>
HWY_INLINE V scale_hidden(const TileRow& row, const RowScaling& scaling, Index col, V largest) {
  const V scores = hn::Load(F(), row.cells + col);
  const V scaled = hide(row, col, kPlain ? scaling.plain(scores) : scaling.general(scores, row.key + col));
  hn::Store(scaled, F(), row.cells + col);
  return hn::Max(largest, scaled);
}

// Scales a row in place, hidden cells to -Inf; the largest of them, or anything where one is NaN.
template <bool kPlain>
HWY_INLINE float scale_row(const TileRow& row, const RowScaling& scaling) {
  const F d;
  V largest = hn::Set(d, -std::numeric_limits<float>::infinity());
  Index col = row.first_vector();
  const Index last = row.last_vector();
  const bool all = row.valid == nullptr;
  if (!all || col < row.first) {
    do {
      largest = scale_hidden<kPlain>(row, scaling, col, largest);
      col += kStep;
    } while (!all && col < last);
  }
  for (; col + kStep <= row.last; col += kStep) {
    const V scores = hn::Load(d, row.cells + col);
    const V scaled = kPlain ? scaling.plain(scores) : scaling.general(scores, row.key + col);
    hn::Store(scaled, d, row.cells + col);
    largest = hn::Max(largest, scaled);
  }
  if (col < last) largest = scale_hidden<kPlain>(row, scaling, col, largest);
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

// Lanes in float64, added in pairs.
HWY_INLINE double sum_in_double(V lanes) {
  HWY_ALIGN float values[kLanes];
  hn::Store(lanes, F(), values);
  double sums[kLanes];
  for (size_t i = 0; i < kLanes; ++i) sums[i] = static_cast<double>(values[i]);
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  return sums[0];
}

// Scaled scores to exp(s)·2^-exponent in place; their sum.
HWY_INLINE double weigh_row(const TileRow& row, std::int32_t exponent) {
  const F d;
  const WeightExp exp(exponent);
  V sum = hn::Zero(d);
  for (Index col = row.first_vector(); col < row.last_vector(); col += kStep) {
    const V weight = exp(hn::Load(d, row.cells + col));
    hn::Store(weight, d, row.cells + col);
    sum = hn::Add(sum, weight);
  }
  return sum_in_double(sum);
}

// Weights below kSmallestWeight to 0; NaN stays.
HWY_INLINE V drop_smallest(V weight) {
  return hn::IfThenZeroElse(hn::Lt(weight, hn::Set(F(), kSmallestWeight)), weight);
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, once for each target
