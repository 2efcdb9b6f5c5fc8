// Vectors of one row's raw scores to scaled ones.
#include "hwy/highway.h"

#if defined(QKV_SCALING_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_SCALING_INL_H
#undef QKV_SCALING_INL_H
#else
#define QKV_SCALING_INL_H
#endif

#include "core/attention/kernels/head_kernel.h"
#include "core/attention/kernels/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// True where a scaled score is nothing but score · scale.
HWY_INLINE bool is_plain(const KernelScaling& scaling) {
  return !(scaling.softcap > 0) && scaling.slope == 0 && !scaling.bias;
}

// Scales the scores of one query row; `base` is subtracted last.
class RowScaling {
 public:
  HWY_INLINE RowScaling(const KernelScaling& scaling, Index row, float base)
      : scaling_(scaling),
        bias_(scaling.bias ? scaling.bias.row(row) : nullptr),
        nk_(scaling.bias.cols),
        position_(static_cast<float>(row * scaling.step + scaling.shift)),
        scale_(hn::Set(F(), scaling.scale)),
        base_(base) {}

  HWY_INLINE V by() const { return scale_; }
  HWY_INLINE V plain(V scores) const { return hn::Mul(scores, scale_); }

  // Scores of keys key, key + 1, … Lanes beyond the last key get numbers without a meaning.
  HWY_INLINE V general(V scores, Index key) const {
    const F d;
    V s = plain(scores);
    if (scaling_.softcap > 0) s = softcap(s, hn::Set(d, scaling_.softcap));
    if (scaling_.slope != 0) {
      const V distance = hn::Abs(hn::Sub(hn::Set(d, position_), hn::Iota(d, static_cast<float>(key))));
      s = hn::NegMulAdd(hn::Set(d, scaling_.slope), distance, s);
    }
    if (bias_ != nullptr) {
      const bool whole = key + static_cast<Index>(kLanes) <= nk_;
      s = hn::Add(s, whole ? hn::LoadU(d, bias_ + key) : load_some(bias_ + key, nk_ - key));
    }
    return base_ == 0 ? s : hn::Sub(s, hn::Set(d, base_));
  }

 private:
  const KernelScaling& scaling_;
  const float* bias_;
  Index nk_;
  float position_;
  V scale_;
  float base_;
};

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, once for each target
