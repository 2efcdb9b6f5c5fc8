#include "core/attention/kernels/row_summary.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/kernels/row_summary.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "hwy/contrib/math/math-inl.h"

#include "core/attention/kernels/load_store-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

FloatExtent extent(const float* cells, Index count) {
  const F d;
  FloatExtent result;
  if (count <= 0) return result;
  V low = hn::Set(d, cells[0]), high = low, zeros = hn::Zero(d);
  const auto add = [&](V v) HWY_ATTR {
    low = hn::Min(low, v);
    high = hn::Max(high, v);
    zeros = hn::MulAdd(v, hn::Zero(d), zeros);  // 0 · NaN and 0 · Inf are NaN
  };
  Index col = 0;
  for (; col + kStep <= count; col += kStep) add(hn::LoadU(d, cells + col));
  for (; col < count; ++col) add(hn::Set(d, cells[col]));
  result.low = hn::GetLane(hn::MinOfLanes(d, low));
  result.high = hn::GetLane(hn::MaxOfLanes(d, high));
  result.all_finite = hn::AllTrue(d, hn::Eq(zeros, hn::Zero(d)));
  return result;
}

// Sums of float32 lanes in float64.
double total(V lanes) {
  HWY_ALIGN float values[kLanes];
  hn::Store(lanes, F(), values);
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value);
  return sum;
}

void weights(const float* cells, Index count, float factor, WeightSummary& summary) {
  const F d;
  // Vectors whose float32 sums are off by less than the logarithms are.
  constexpr Index kPart = 8 * kStep;
  const V by = hn::Set(d, factor), least = hn::Set(d, std::numeric_limits<float>::min());
  V low = hn::Set(d, summary.low), high = hn::Set(d, summary.high), positive = hn::Set(d, summary.positive);
  for (Index first = 0; first < count; first += kPart) {
    const Index last = std::min(first + kPart, count);
    V sum = hn::Zero(d), entropy = hn::Zero(d);
    for (Index col = first; col < last; col += kStep) {
      const bool whole = col + kStep <= last;
      const V a = hn::Mul(whole ? hn::LoadU(d, cells + col) : load_some(cells + col, last - col), by);
      sum = hn::Add(sum, a);
      entropy = hn::MulAdd(a, hn::Log(d, hn::Max(a, least)), entropy);  // a·ln a → 0 for a → 0
      // Lanes beyond the last weight repeat the first, which is one of them.
      const V seen =
          whole ? a : hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(last - col)), a, hn::Set(d, hn::GetLane(a)));
      low = hn::Min(low, seen);
      high = hn::Max(high, seen);
      positive = hn::Min(positive, hn::IfThenElse(hn::Gt(seen, hn::Zero(d)), seen, hn::Set(d, kNoLow)));
    }
    summary.sum += total(sum);
    summary.entropy -= total(entropy);
  }
  summary.low = hn::GetLane(hn::MinOfLanes(d, low));
  summary.high = hn::GetLane(hn::MaxOfLanes(d, high));
  summary.positive = hn::GetLane(hn::MinOfLanes(d, positive));
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(extent);
HWY_EXPORT(weights);

FloatExtent float_extent(const float* cells, Index count) { return HWY_DYNAMIC_DISPATCH(extent)(cells, count); }

void add_weights(const float* cells, Index count, float factor, WeightSummary& summary) {
  HWY_DYNAMIC_DISPATCH(weights)(cells, count, factor, summary);
}

}  // namespace qkv
#endif  // HWY_ONCE
