#include "core/attention/kernels/patch_rows.h"

#include <cmath>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/kernels/patch_rows.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What a key adds to a row, divided by the row's sum.
struct Change {
  const double *value_before, *value_after;  // [d_v]
  double weight_before, weight_after;

  template <class D, class V>
  HWY_INLINE V add_to(D d, V sum, Index col) const {
    sum = hn::NegMulAdd(hn::Set(d, weight_before), hn::LoadU(d, value_before + col), sum);
    return hn::MulAdd(hn::Set(d, weight_after), hn::LoadU(d, value_after + col), sum);
  }
};

// Some cells from column `col`: out + rest, to double precision, · ratio + changes.
template <class D>
HWY_INLINE void patch_cells(D d, Index col, float* out, float* rest, double ratio, const Change* begin,
                            const Change* end) {
  const hn::Rebind<float, D> floats;
  const auto before =
      hn::Add(hn::PromoteTo(d, hn::LoadU(floats, out + col)), hn::PromoteTo(d, hn::LoadU(floats, rest + col)));
  auto exact = hn::Mul(before, hn::Set(d, ratio));
  for (const Change* change = begin; change != end; ++change) exact = change->add_to(d, exact, col);
  const auto rounded = hn::DemoteTo(floats, exact);
  hn::StoreU(rounded, floats, out + col);
  hn::StoreU(hn::DemoteTo(floats, hn::Sub(exact, hn::PromoteTo(d, rounded))), floats, rest + col);
}

HWY_INLINE void patch_row(Index d_v, float* out, float* rest, double ratio, const Change* begin, const Change* end) {
  const hn::ScalableTag<double> d;
  const hn::CappedTag<double, 1> one;
  const auto step = static_cast<Index>(hn::Lanes(d));
  Index col = 0;
  for (; col + step <= d_v; col += step) patch_cells(d, col, out, rest, ratio, begin, end);
  for (; col < d_v; ++col) patch_cells(one, col, out, rest, ratio, begin, end);
}

void patch_all(const RowsPatch& patch) {
  std::vector<Change> changes;
  for (Index row = 0; row < patch.out.rows; ++row) {
    const SumPatch& sum = patch.sums[static_cast<std::size_t>(row)];
    if (std::isnan(sum.after)) continue;
    changes.clear();
    for (const KeyPatch& key : patch.keys) {
      const double before = key.weight_before[row], after = key.weight_after[row];
      if (before == 0 && after == 0) continue;  // the value may be NaN
      changes.push_back({key.value_before, key.value_after, before / sum.after, after / sum.after});
    }
    if (changes.empty() && sum.before == sum.after) continue;
    const double ratio = sum.before == sum.after ? 1 : sum.before / sum.after;
    float *const out = patch.out.row(row), *const rest = patch.rest.row(row);
    if (changes.size() == 1) {
      const Change only = changes[0];  // stays in registers
      patch_row(patch.out.cols, out, rest, ratio, &only, &only + 1);
    } else {
      patch_row(patch.out.cols, out, rest, ratio, changes.data(), changes.data() + changes.size());
    }
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
