#include "core/attention/kernels/patch_rows.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/kernels/patch_rows.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<double>;

void add_key(double* sums, Index d_v, const KeyPatch& key, double before, double after) {
  const D d;
  const auto step = static_cast<Index>(hn::Lanes(d));
  const auto weight_before = hn::Set(d, before), weight_after = hn::Set(d, after);
  Index col = 0;
  for (; col + step <= d_v; col += step) {
    const auto less = hn::NegMulAdd(weight_before, hn::LoadU(d, key.value_before + col), hn::LoadU(d, sums + col));
    hn::StoreU(hn::MulAdd(weight_after, hn::LoadU(d, key.value_after + col), less), d, sums + col);
  }
  for (; col < d_v; ++col) sums[col] = sums[col] - before * key.value_before[col] + after * key.value_after[col];
}

void write_out(const double* sums, Index d_v, double normalizer, float* out, float* shown) {
  const D d;
  const hn::Rebind<float, D> to;
  const auto step = static_cast<Index>(hn::Lanes(d));
  const auto factor = hn::Set(d, normalizer);
  Index col = 0;
  for (; col + step <= d_v; col += step) {
    const auto cells = hn::DemoteTo(to, hn::Mul(hn::LoadU(d, sums + col), factor));
    hn::StoreU(cells, to, out + col);
    hn::StoreU(cells, to, shown + col);
  }
  for (; col < d_v; ++col) out[col] = shown[col] = static_cast<float>(sums[col] * normalizer);
}

void patch_all(const RowsPatch& patch) {
  for (Index row = 0; row < patch.rows; ++row) {
    double* const sums = patch.sums + row * patch.d_v;
    for (const KeyPatch& key : patch.keys) {
      const double before = key.weight_before[row], after = key.weight_after[row];
      if (before != 0 || after != 0) add_key(sums, patch.d_v, key, before, after);
    }
    if (std::isnan(patch.normalizers[row])) continue;
    write_out(sums, patch.d_v, patch.normalizers[row], patch.out.row(row), patch.shown.row(row));
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(patch_all);

void patch_rows_of(const RowsPatch& patch) { HWY_DYNAMIC_DISPATCH(patch_all)(patch); }

}  // namespace qkv
#endif  // HWY_ONCE
