// Parts of vectors, for the ends of rows.
#include "hwy/highway.h"

#if defined(QKV_LOAD_STORE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_LOAD_STORE_INL_H
#undef QKV_LOAD_STORE_INL_H
#else
#define QKV_LOAD_STORE_INL_H
#endif

#include <algorithm>
#include <cstring>

#include "core/attention/rect.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;
inline constexpr size_t kLanes = hn::MaxLanes(F());
inline constexpr auto kStep = static_cast<Index>(kLanes);

// The first `count` floats at `from`, then zeros. Reads no further. `count` may be more than a vector has, or negative.
HWY_INLINE V load_some(const float* from, Index count) {
  HWY_ALIGN float lanes[kLanes] = {};
  if (count > 0) std::copy_n(from, std::min(count, kStep), lanes);
  return hn::Load(F(), lanes);
}

HWY_INLINE void store_some(V v, float* to, Index count) {
  HWY_ALIGN float lanes[kLanes];
  hn::Store(v, F(), lanes);
  std::copy_n(lanes, std::min(count, kStep), to);
}

// Zeros to [first, last); nothing where that is empty.
HWY_INLINE void clear(float* first, float* last) {
  // std::fill writes one float at a time.
  if (first < last) std::memset(first, 0, static_cast<size_t>(last - first) * sizeof(float));
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, once for each target
