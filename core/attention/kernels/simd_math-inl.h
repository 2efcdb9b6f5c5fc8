// exp and c·tanh(s / c) of float32 vectors.
#include "hwy/highway.h"

#if defined(QKV_SIMD_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_SIMD_MATH_INL_H
#undef QKV_SIMD_MATH_INL_H
#else
#define QKV_SIMD_MATH_INL_H
#endif

#include <cstdint>

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

// s = n·ln 2 + r, |r| ≤ ln 2 / 2 and a little, n whole. `shifted` is n + kMagic: its low bits are n.
struct Reduced {
  V shifted, n, r;
};

// Adding 1.5·2^23 leaves no bits behind the point, so the sum is rounded to a whole number; |n| < 2^22.
inline constexpr float kMagic = 0x1.8p23f;

HWY_INLINE Reduced reduce(V s) {
  const F d;
  Reduced result;
  result.shifted = hn::MulAdd(s, hn::Set(d, 0x1.715476p0f), hn::Set(d, kMagic));
  result.n = hn::Sub(result.shifted, hn::Set(d, kMagic));
#if HWY_NATIVE_FMA
  result.r = hn::NegMulAdd(result.n, hn::Set(d, 0x1.62e43p-1f), s);
  result.r = hn::NegMulAdd(result.n, hn::Set(d, -0x1.05c61p-29f), result.r);
#else
  // Products are rounded here: parts of 11 bits times n of up to 13 bits fit in 24.
  result.r = hn::NegMulAdd(result.n, hn::Set(d, 0x1.62cp-1f), s);
  result.r = hn::NegMulAdd(result.n, hn::Set(d, 0x1.214p-12f), result.r);
  result.r = hn::NegMulAdd(result.n, hn::Set(d, 0x1.fbe8e8p-23f), result.r);
#endif
  return result;
}

// (exp(r) − 1 − r) / r² for |r| ≤ ln 2 / 2: the least largest relative error of exp that a polynomial of degree 6 has
// (3·10^-9), found by reweighted least squares.
HWY_INLINE V exp_tail(V r) {
  const F d;
  V p = hn::MulAdd(r, hn::Set(d, 0x1.6a241ap-10f), hn::Set(d, 0x1.1239f2p-7f));
  p = hn::MulAdd(r, p, hn::Set(d, 0x1.5558f2p-5f));
  p = hn::MulAdd(r, p, hn::Set(d, 0x1.555492p-3f));
  return hn::MulAdd(r, p, hn::Set(d, 0x1.fffffcp-2f));
}

// exp(s)·2^-exponent for one row: 0 where that is less than about 2^-126, NaN where s is. s up to kLargestPlainScore,
// and no larger than what `exponent` was made from.
class WeightExp {
 public:
  HWY_INLINE explicit WeightExp(std::int32_t exponent)
      : smallest_(hn::Set(F(), kMagic + static_cast<float>(exponent - 127))),
        bias_(hn::Set(I(), static_cast<std::int32_t>(127 - exponent))) {}

  HWY_INLINE V operator()(V s) const {
    const F d;
    // Below this everything is 0; the bound keeps r small where s is -Inf.
    s = max_keep_nan(hn::Set(d, -2 * kLargestPlainScore), s);
    const Reduced x = reduce(s);
    const V one = hn::Set(d, 1.0f);
    const V p = hn::MulAdd(x.r, hn::MulAdd(x.r, exp_tail(x.r), one), one);
    // An exponent of -127 makes the bits of 0.
    const auto bits = hn::BitCast(I(), hn::Max(x.shifted, smallest_));
    return hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(bits, bias_))));
  }

 private:
  V smallest_;
  hn::Vec<I> bias_;
};

// The whole exponent that WeightExp gives a score, at least kSmallestExponent. Any s, also NaN.
HWY_INLINE std::int32_t weight_exponent(float s) {
  if (!(s > -kLargestPlainScore)) return kSmallestExponent;
  const float bounded = s < kLargestPlainScore ? s : kLargestPlainScore;
  return static_cast<std::int32_t>(hn::GetLane(reduce(hn::Set(F(), bounded)).n));
}

// c·tanh(s / c), c > 0. No step cancels: tanh y = -m / (2 + m) with m = exp(-2y) − 1 made of 2^n·(exp(r) − 1) and
// 2^n − 1, which is exact. Off by at most 3.5 ulp (3.3 measured).
HWY_INLINE V softcap(V s, V c) {
  const F d;
  const I di;
  const V x = hn::Div(s, c);
  const V y = hn::Min(hn::Abs(x), hn::Set(d, 20.0f));  // tanh 20 is 1 in float32
  const Reduced z = reduce(hn::Mul(y, hn::Set(d, -2.0f)));
  const V em1 = hn::MulAdd(hn::Mul(z.r, z.r), exp_tail(z.r), z.r);
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::BitCast(di, z.shifted), hn::Set(di, 127))));
  const V m = hn::MulAdd(power, em1, hn::Sub(power, hn::Set(d, 1.0f)));
  const V tanh = hn::Div(hn::Neg(m), hn::Add(m, hn::Set(d, 2.0f)));
  const V result = hn::Mul(c, hn::CopySign(tanh, x));
  // Where tanh x is x to the last bit, s is better than c·(s / c). NaN goes this way too.
  return hn::IfThenElse(hn::Ge(hn::Abs(x), hn::Set(d, 0x1p-13f)), result, s);
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, once for each target
