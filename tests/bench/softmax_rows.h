// The peers' softmax: one row of raw scores at a time, vectorized for the instructions that the program is compiled
// for. Only for programs that are compiled whole with one set of flags: the target is chosen while compiling.
#pragma once

#include <hwy/highway.h>

#include <limits>

namespace qkv::bench {

namespace hn = hwy::HWY_NAMESPACE;

// 2^x for x ≤ 0 and above −126, relative error under 2 eps. Adding 1.5·2^23 rounds to a whole number and leaves it in
// the lowest bits, from where it goes into the exponent; the rest takes the minimax polynomial of degree 5 on [−½, ½]
// (relative error 7.5e−8). Lower x give 2^−126.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp2_negative(D d, V x) {
  const hn::RebindToSigned<D> di;
  x = hn::Max(x, hn::Set(d, -126.0F));
  const V shifted = hn::Add(x, hn::Set(d, 12582912.0F));
  const V f = hn::Sub(x, hn::Sub(shifted, hn::Set(d, 12582912.0F)));
  V p = hn::Set(d, 1.3276471979478776e-3F);
  p = hn::MulAdd(p, f, hn::Set(d, 9.67554133421605e-3F));
  p = hn::MulAdd(p, f, hn::Set(d, 5.550713273542586e-2F));
  p = hn::MulAdd(p, f, hn::Set(d, 2.4022119723848476e-1F));
  p = hn::MulAdd(p, f, hn::Set(d, 6.931469670647331e-1F));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0000000716546822F));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
}

inline float row_max(const float* row, int count) {
  const hn::ScalableTag<float> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto m0 = lowest, m1 = lowest, m2 = lowest, m3 = lowest;
  int j = 0;
  for (; j + 4 * lanes <= count; j += 4 * lanes) {
    m0 = hn::Max(m0, hn::LoadU(d, row + j));
    m1 = hn::Max(m1, hn::LoadU(d, row + j + lanes));
    m2 = hn::Max(m2, hn::LoadU(d, row + j + 2 * lanes));
    m3 = hn::Max(m3, hn::LoadU(d, row + j + 3 * lanes));
  }
  for (; j + lanes <= count; j += lanes) m0 = hn::Max(m0, hn::LoadU(d, row + j));
  float largest = hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(m0, m1), hn::Max(m2, m3))));
  for (; j < count; ++j) largest = row[j] > largest ? row[j] : largest;
  return largest;
}

// row[j] = 2^(row[j]·factor − shift); returns the sum. `shift` is factor times the row's largest, or more.
inline float exp_row(float* row, int count, float factor, float shift) {
  const hn::ScalableTag<float> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const auto by = hn::Set(d, factor), less = hn::Set(d, shift);
  auto s0 = hn::Zero(d), s1 = hn::Zero(d);
  int j = 0;
  for (; j + 2 * lanes <= count; j += 2 * lanes) {
    const auto e0 = exp2_negative(d, hn::MulSub(hn::LoadU(d, row + j), by, less));
    const auto e1 = exp2_negative(d, hn::MulSub(hn::LoadU(d, row + j + lanes), by, less));
    hn::StoreU(e0, d, row + j);
    hn::StoreU(e1, d, row + j + lanes);
    s0 = hn::Add(s0, e0);
    s1 = hn::Add(s1, e1);
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
  const hn::CappedTag<float, 1> one;
  for (; j < count; ++j) {
    const auto e = exp2_negative(one, hn::MulSub(hn::LoadU(one, row + j), hn::Set(one, factor), hn::Set(one, shift)));
    hn::StoreU(e, one, row + j);
    sum += hn::GetLane(e);
  }
  return sum;
}

inline void scale_row(float* row, int count, float factor) {
  const hn::ScalableTag<float> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const auto by = hn::Set(d, factor);
  int j = 0;
  for (; j + lanes <= count; j += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, row + j), by), d, row + j);
  for (; j < count; ++j) row[j] *= factor;
}

}  // namespace qkv::bench
