#include "core/attention/kernels/packing.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/kernels/packing.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR  // has no vectors to interleave
HWY_INLINE void transpose_4x4(const float* from, Index stride, float* to) {
  for (Index i = 0; i < 4; ++i) {
    for (Index k = 0; k < 4; ++k) to[k * kPanel + i] = from[i * stride + k];
  }
}
#else
// Four rows from four places to four columns, 16 floats from one row of the result to the next.
HWY_INLINE void transpose_4x4(const float* from, Index stride, float* to) {
  const hn::FixedTag<float, 4> d;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + stride);
  const auto r2 = hn::LoadU(d, from + 2 * stride), r3 = hn::LoadU(d, from + 3 * stride);
  const auto even0 = hn::InterleaveLower(d, r0, r2), odd0 = hn::InterleaveLower(d, r1, r3);
  const auto even1 = hn::InterleaveUpper(d, r0, r2), odd1 = hn::InterleaveUpper(d, r1, r3);
  hn::Store(hn::InterleaveLower(d, even0, odd0), d, to);
  hn::Store(hn::InterleaveUpper(d, even0, odd0), d, to + kPanel);
  hn::Store(hn::InterleaveLower(d, even1, odd1), d, to + 2 * kPanel);
  hn::Store(hn::InterleaveUpper(d, even1, odd1), d, to + 3 * kPanel);
}

#endif

void transposed(FloatView rows, Panels& panels) {
  const Index whole = rows.rows / 4 * 4, depth = rows.cols / 4 * 4;
  for (Index row = 0; row < whole; row += 4) {
    float* const to = panels.at(0, row);
    for (Index k = 0; k < depth; k += 4) transpose_4x4(rows.row(row) + k, rows.stride, to + k * kPanel);
    for (Index k = depth; k < rows.cols; ++k) {
      for (Index i = 0; i < 4; ++i) to[k * kPanel + i] = rows.row(row + i)[k];
    }
  }
  for (Index row = whole; row < panels_of(rows.rows) * kPanel; ++row) {
    float* const to = panels.at(0, row);
    for (Index k = 0; k < rows.cols; ++k) to[k * kPanel] = row < rows.rows ? rows.row(row)[k] : 0.0f;
  }
}

bool copied(FloatView rows, float* to) {
  const hn::CappedTag<float, kPanel> d;
  constexpr auto step = static_cast<Index>(hn::MaxLanes(d));
  // 0 · NaN and 0 · Inf are NaN. One sum for each vector of a panel, so that they do not wait for one another.
  hn::Vec<decltype(d)> zeros[kPanel / step];
  std::fill(std::begin(zeros), std::end(zeros), hn::Zero(d));
  float zero = 0;
  for (Index first = 0; first < rows.cols; first += kPanel) {
    const Index count = std::min(kPanel, rows.cols - first);
    for (Index row = 0; row < rows.rows; ++row, to += kPanel) {
      const float* const from = rows.row(row) + first;
      if (count == kPanel) {
        for (Index i = 0; i < kPanel; i += step) {
          const auto cells = hn::LoadU(d, from + i);
          hn::Store(cells, d, to + i);
          zeros[i / step] = hn::MulAdd(cells, hn::Zero(d), zeros[i / step]);
        }
      } else {
        std::fill(std::copy_n(from, count, to), to + kPanel, 0.0f);
        for (Index i = 0; i < count; ++i) zero += from[i] * 0.0f;
      }
    }
  }
  return zero == 0 && std::all_of(std::begin(zeros), std::end(zeros),
                                  [d](auto sum) { return hn::AllTrue(d, hn::Eq(sum, hn::Zero(d))); });
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(copied);
HWY_EXPORT(transposed);

void Panels::resize(Index row_count, Index col_count) {
  rows = row_count;
  cols = col_count;
  cells.reserve(panels_of(col_count) * row_count * kPanel);
}

void pack_transposed(FloatView rows, Panels& panels) { HWY_DYNAMIC_DISPATCH(transposed)(rows, panels); }

bool pack_panels(FloatView rows, float* to) { return HWY_DYNAMIC_DISPATCH(copied)(rows, to); }

}  // namespace qkv
#endif  // HWY_ONCE
