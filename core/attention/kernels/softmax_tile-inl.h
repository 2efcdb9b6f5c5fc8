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

// Keys that a row takes at once: sums are taken within blocks at fixed keys first. What a row costs beside its cells
// weighs more where vectors are wide.
#if HWY_TARGET <= HWY_AVX3
inline constexpr Index kKeyBlock = 512;
#else
inline constexpr Index kKeyBlock = 256;
#endif

// What a row sees of a tile, in columns from the tile's first.
struct TileRow {
  float* cells;
  Index first, last;   // columns that the row sees but for those that `valid` hides; first < last
  const float* valid;  // of each column, 0 = hidden; nullptr = none is
  Index key;           // of column 0

  Index first_vector() const { return first / kStep * kStep; }
  Index last_vector() const { return (last + kStep - 1) / kStep * kStep; }
};

// Columns of which the row sees all, in whole vectors, and whose scores are to be multiplied by the scale and no more.
template <bool kPlain>
HWY_INLINE KeyRange plain_columns(const TileRow& row) {
  if (!kPlain || row.valid != nullptr) return {row.last_vector(), row.last_vector()};
  const Index first = (row.first + kStep - 1) / kStep * kStep;
  return {first, std::max(first, row.last / kStep * kStep)};
}

HWY_INLINE V hide(const TileRow& row, Index col, V scaled) {
  const F d;
  const V at = hn::Iota(d, static_cast<float>(col));
  auto seen = hn::And(hn::Ge(at, hn::Set(d, static_cast<float>(row.first))),
                      hn::Lt(at, hn::Set(d, static_cast<float>(row.last))));
  if (row.valid != nullptr) seen = hn::And(seen, hn::Ne(hn::Load(d, row.valid + col), hn::Zero(d)));
  return hn::IfThenElse(seen, scaled, hn::Set(d, -std::numeric_limits<float>::infinity()));
}

template <bool kPlain>
HWY_INLINE bool all_plain(const TileRow& row) {
  return kPlain && row.valid == nullptr && row.first % kStep == 0 && row.last % kStep == 0;
}

// Scales columns [begin, end) in place, whole vectors, hidden cells to -Inf; the largest in each lane, with `largest`.
template <bool kPlain>
HWY_INLINE V scale_columns(const TileRow& row, const RowScaling& scaling, Index begin, Index end, V largest) {
  const F d;
  for (Index col = begin; col < end; col += kStep) {
    const V scores = hn::Load(d, row.cells + col);
    V scaled = kPlain ? scaling.plain(scores) : scaling.general(scores, row.key + col);
    if (row.valid != nullptr || col < row.first || col + kStep > row.last) scaled = hide(row, col, scaled);
    hn::Store(scaled, d, row.cells + col);
    largest = hn::Max(largest, scaled);
  }
  return largest;
}

// Scores that are looked at before the first weights of a row: what comes then need not be looked at twice.
inline constexpr Index kLook = 4 * kStep;

// The largest in each lane, with `largest`, of the first of `count` raw scores, which are to be multiplied by `by` and
// no more.
HWY_INLINE V look_at(const float* scores, Index count, V by, V largest) {
  for (Index i = 0; i < std::min(kLook, count); i += kStep) {
    largest = hn::Max(largest, hn::Mul(hn::Load(F(), scores + i), by));
  }
  return largest;
}

// The exponent that a row begins with whose scores are all such.
HWY_INLINE std::int32_t first_exponent(const float* scores, Index count, float scale) {
  const F d;
  const V largest = look_at(scores, count, hn::Set(d, scale), hn::Set(d, -std::numeric_limits<float>::infinity()));
  return weight_exponent(hn::GetLane(hn::MaxOfLanes(d, largest)));
}

// Scales what is more than plain, in place, and gives the exponent of the largest of that, and of the first plain
// scores where `look`.
template <bool kPlain>
HWY_INLINE std::int32_t foreseen_exponent(const TileRow& row, const RowScaling& scaling, bool look) {
  const F d;
  const KeyRange plain = plain_columns<kPlain>(row);
  V largest = hn::Set(d, -std::numeric_limits<float>::infinity());
  largest = scale_columns<kPlain>(row, scaling, row.first_vector(), std::min(plain.first, row.last_vector()), largest);
  if (look) largest = look_at(row.cells + plain.first, plain.last - plain.first, scaling.by(), largest);
  largest = scale_columns<kPlain>(row, scaling, plain.last, row.last_vector(), largest);
  return weight_exponent(hn::GetLane(hn::MaxOfLanes(d, largest)));
}

// The sum of the lanes in float64.
HWY_INLINE double sum_in_double(V lanes) {
#if HWY_TARGET == HWY_SCALAR
  return static_cast<double>(hn::GetLane(lanes));
#else
  const hn::Half<F> half;
  const hn::Rebind<double, decltype(half)> d;
  const auto low = hn::PromoteTo(d, hn::LowerHalf(half, lanes)), high = hn::PromoteTo(d, hn::UpperHalf(half, lanes));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(low, high)));
#endif
}

// What the weights of some of a row's columns come to, lane by lane.
struct LaneSums {
  V largest, sum;  // of the scaled scores, or anything where one is NaN; of the weights

  HWY_INLINE LaneSums() : largest(hn::Set(F(), -std::numeric_limits<float>::infinity())), sum(hn::Zero(F())) {}
};

// cells = exp(cells·by)·2^-exponent for some vectors from `cells`.
template <size_t... kI>
HWY_INLINE void weigh_vectors(float* cells, V by, const WeightExp& exp, LaneSums& lanes,
                              std::index_sequence<kI...> each) {
  const F d;
  V scaled[sizeof...(kI)], weights[sizeof...(kI)];
  ((scaled[kI] = hn::Mul(hn::Load(d, cells + static_cast<Index>(kI) * kStep), by)), ...);
  exp.all(scaled, weights, each);
  ((lanes.largest = hn::Max(lanes.largest, scaled[kI])), ...);
  (hn::Store(weights[kI], d, cells + static_cast<Index>(kI) * kStep), ...);
  ((lanes.sum = hn::Add(lanes.sum, weights[kI])), ...);
}

HWY_INLINE void weigh_columns(float* cells, Index begin, Index end, V by, const WeightExp& exp, LaneSums& lanes) {
  constexpr Index kTogether = 4;
  Index col = begin;
  for (; col + kTogether * kStep <= end; col += kTogether * kStep) {
    weigh_vectors(cells + col, by, exp, lanes, std::make_index_sequence<kTogether>());
  }
  for (; col < end; col += kStep) weigh_vectors(cells + col, by, exp, lanes, std::index_sequence<0>());
}

// Scores, as foreseen_exponent leaves them, to weights; the largest scaled score, or anything where one is NaN, and the
// sums of the weights lane by lane.
template <bool kPlain>
HWY_INLINE float weigh_row(const TileRow& row, const RowScaling& scaling, std::int32_t exponent, float* lane_sums) {
  const F d;
  const WeightExp exp(exponent);
  const KeyRange plain = plain_columns<kPlain>(row);
  const V one = hn::Set(d, 1.0f);
  LaneSums lanes;
  weigh_columns(row.cells, row.first_vector(), std::min(plain.first, row.last_vector()), one, exp, lanes);
  weigh_columns(row.cells, plain.first, plain.last, scaling.by(), exp, lanes);
  weigh_columns(row.cells, plain.last, row.last_vector(), one, exp, lanes);
  hn::Store(lanes.sum, d, lane_sums);
  return hn::GetLane(hn::MaxOfLanes(d, lanes.largest));
}

// Weights below kSmallestWeight to 0; NaN stays.
HWY_INLINE V drop_smallest(V weight) {
  return hn::IfThenZeroElse(hn::Lt(weight, hn::Set(F(), kSmallestWeight)), weight);
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, once for each target
