// exp and c·tanh(s / c) of float32 vectors.
#include "hwy/highway.h"

#if defined(QKV_SIMD_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_SIMD_MATH_INL_H
#undef QKV_SIMD_MATH_INL_H
#else
#define QKV_SIMD_MATH_INL_H
#endif

#include <cstdint>
#include <utility>

#include "core/attention/kernels/load_store-inl.h"
#include "core/attention/kernels/softmax_exponent.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

using I = hn::RebindToSigned<F>;

// The larger of a and b, and b where b is NaN.
HWY_INLINE V max_keep_nan(V a, V b) {
#if HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
  return hn::IfThenElse(hn::Lt(b, a), a, b);
#else
  return hn::Max(a, b);  // maxps gives its second operand where either is NaN
#endif
}

// Adding 1.5·2^23 leaves no bits behind the point, so the sum is rounded to a whole number n, which the low bits hold;
// |n| < 2^22.
inline constexpr float kMagic = 0x1.8p23f;

// Several vectors take each step together: one alone waits four cycles for each of some ten results in turn, and
// processors do not look many vectors ahead.
//
// s = n·ln 2 + r, |r| ≤ ln 2 / 2 and a little, n whole; `shifted` = n + magic, which is kMagic and a whole number.
template <size_t... kI>
HWY_INLINE void reduce(const V* s, V magic, V* shifted, V* r, std::index_sequence<kI...>) {
  V n[sizeof...(kI)];
  const F d;
  ((shifted[kI] = hn::MulAdd(s[kI], hn::Set(d, 0x1.715476p0f), magic)), ...);
  ((n[kI] = hn::Sub(shifted[kI], magic)), ...);
#if HWY_NATIVE_FMA
  ((r[kI] = hn::NegMulAdd(n[kI], hn::Set(d, 0x1.62e43p-1f), s[kI])), ...);
  ((r[kI] = hn::NegMulAdd(n[kI], hn::Set(d, -0x1.05c61p-29f), r[kI])), ...);
#else
  // Products are rounded here: parts of 11 bits times n of up to 13 bits fit in 24.
  ((r[kI] = hn::NegMulAdd(n[kI], hn::Set(d, 0x1.62cp-1f), s[kI])), ...);
  ((r[kI] = hn::NegMulAdd(n[kI], hn::Set(d, 0x1.214p-12f), r[kI])), ...);
  ((r[kI] = hn::NegMulAdd(n[kI], hn::Set(d, 0x1.fbe8e8p-23f), r[kI])), ...);
#endif
}

// p = (exp(r) − 1 − r) / r² for |r| ≤ ln 2 / 2: the least largest relative error of exp that a polynomial of degree 6
// has (3·10^-9), found by reweighted least squares.
template <size_t... kI>
HWY_INLINE void exp_tail(const V* r, V* p, std::index_sequence<kI...>) {
  const F d;
  ((p[kI] = hn::MulAdd(r[kI], hn::Set(d, 0x1.6a241ap-10f), hn::Set(d, 0x1.1239f2p-7f))), ...);
  ((p[kI] = hn::MulAdd(r[kI], p[kI], hn::Set(d, 0x1.5558f2p-5f))), ...);
  ((p[kI] = hn::MulAdd(r[kI], p[kI], hn::Set(d, 0x1.555492p-3f))), ...);
  ((p[kI] = hn::MulAdd(r[kI], p[kI], hn::Set(d, 0x1.fffffcp-2f))), ...);
}

// exp(s)·2^-exponent: 0 where that is less than about 2^-126, NaN where s is. s up to kLargestPlainScore, and no more
// than kHeadroom·ln 2 above what has that exponent.
class WeightExp {
 public:
  // Of one row; or of several, with an exponent for each lane.
  HWY_INLINE explicit WeightExp(std::int32_t exponent) : WeightExp(hn::Set(F(), static_cast<float>(exponent))) {}
  HWY_INLINE explicit WeightExp(V exponents)
      : smallest_(hn::Mul(hn::Sub(exponents, hn::Set(F(), 127.0f)), hn::Set(F(), 0x1.62e43p-1f))),
        magic_(hn::Sub(hn::Set(F(), kMagic + 127.0f), exponents)) {}

  HWY_INLINE V operator()(V s) const {
    V weight;
    all(&s, &weight, std::index_sequence<0>());
    return weight;
  }

  // For several vectors.
  template <size_t... kI>
  HWY_INLINE void all(const V* s, V* weights, std::index_sequence<kI...> each) const {
    const F d;
    const V one = hn::Set(d, 1.0f);
    V bounded[sizeof...(kI)], shifted[sizeof...(kI)], r[sizeof...(kI)];
    ((bounded[kI] = max_keep_nan(smallest_, s[kI])), ...);
    reduce(bounded, magic_, shifted, r, each);
    exp_tail(r, weights, each);
    ((weights[kI] = hn::MulAdd(r[kI], weights[kI], one)), ...);
    ((weights[kI] = hn::MulAdd(r[kI], weights[kI], one)), ...);
    ((weights[kI] = hn::Mul(weights[kI], power(shifted[kI]))), ...);
  }

 private:
  // The low bits of `shifted` are n − exponent + 127: those of 2^(n − exponent), or of 0 for the smallest score.
  static HWY_INLINE V power(V shifted) { return hn::BitCast(F(), hn::ShiftLeft<23>(hn::BitCast(I(), shifted))); }

  V smallest_, magic_;
};

// The whole exponent that WeightExp gives a score, at least kSmallestExponent. Any s, also NaN.
HWY_INLINE std::int32_t weight_exponent(float s) {
  if (!(s > -kLargestPlainScore)) return kSmallestExponent;
  const float bounded = s < kLargestPlainScore ? s : kLargestPlainScore;
  const V vector = hn::Set(F(), bounded);
  V shifted, r;
  reduce(&vector, hn::Set(F(), kMagic), &shifted, &r, std::index_sequence<0>());
  return static_cast<std::int32_t>(hn::GetLane(shifted) - kMagic);
}

// c·tanh(s / c), c > 0. No step cancels: tanh y = -m / (2 + m) with m = exp(-2y) − 1 made of 2^n·(exp(r) − 1) and
// 2^n − 1, which is exact. Off by at most 3.5 ulp (3.3 measured).
HWY_INLINE V softcap(V s, V c) {
  const F d;
  const I di;
  const V x = hn::Div(s, c);
  const V y = hn::Min(hn::Abs(x), hn::Set(d, 20.0f));  // tanh 20 is 1 in float32
  const V z = hn::Mul(y, hn::Set(d, -2.0f));
  V shifted, r, tail;
  reduce(&z, hn::Set(d, kMagic + 127), &shifted, &r, std::index_sequence<0>());
  exp_tail(&r, &tail, std::index_sequence<0>());
  const V em1 = hn::MulAdd(hn::Mul(r, r), tail, r);
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  const V m = hn::MulAdd(power, em1, hn::Sub(power, hn::Set(d, 1.0f)));
  const V tanh = hn::Div(hn::Neg(m), hn::Add(m, hn::Set(d, 2.0f)));
  const V result = hn::Mul(c, hn::CopySign(tanh, x));
  // Where tanh x is x to the last bit, s is better than c·(s / c). NaN goes this way too.
  return hn::IfThenElse(hn::Ge(hn::Abs(x), hn::Set(d, 0x1p-13f)), result, s);
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, once for each target
