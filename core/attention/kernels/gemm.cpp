#include "core/attention/kernels/gemm.h"

#include <algorithm>

#include "core/attention/kernels/packing.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/kernels/gemm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "core/attention/kernels/load_store-inl.h"
#include "core/attention/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// Terms of a cell that are summed in registers before they are added to the cell.
inline constexpr Index kDepthBlock = 256;

// Adds the products of one depth block to `out`; the first block begins with the bias.
struct FactorJob {
  const float* left;
  Index left_stride;
  const Panels& factor;
  Index depth_first, depth;
  const float* bias;
  FloatBlock out;

  template <size_t kRows, size_t kVecs>
  HWY_NOINLINE void run(Index row, Index end, Index vec) const {
    const Index col = vec * kStep;
    const float* const right = factor.panel(col / kPanel) + depth_first * kPanel + col % kPanel;
    for (; row < end; row += static_cast<Index>(kRows)) {
      multiply_tile<kRows, kVecs>(left + row * left_stride, left_stride, right, factor.panel_stride(), depth,
                                  Store{*this, row, col});
    }
  }

  struct Store {
    const FactorJob& job;
    Index first_row, first_col;

    template <size_t kVecs>
    HWY_INLINE void row(Index r, const V* sums) const {
      const F d;
      float* const to = job.out.row(first_row + r) + first_col;
      const float* const earlier = job.depth_first > 0 ? to : job.bias != nullptr ? job.bias + first_col : nullptr;
      for (size_t v = 0; v < kVecs; ++v) {
        const Index col = static_cast<Index>(v) * kStep, left_over = job.out.cols - first_col - col;
        if (left_over >= kStep) {
          hn::StoreU(earlier != nullptr ? hn::Add(hn::LoadU(d, earlier + col), sums[v]) : sums[v], d, to + col);
        } else if (left_over > 0) {
          const V sum = earlier != nullptr ? hn::Add(load_some(earlier + col, left_over), sums[v]) : sums[v];
          store_some(sum, to + col, left_over);
        }
      }
    }
  };
};

void multiply_panels(FloatView left, const Panels& factor, const float* bias, FloatBlock out) {
  constexpr Index kRows = 48, kStride = kDepthBlock + kPanel;
  const Index last_vec = (factor.cols + kStep - 1) / kStep;
  // Rows of a wide matrix lie in the same places of a cache, so each block of them is copied to where they do not.
  AlignedBuffer copy(std::min(kRows, left.rows) * kStride);
  for (Index row = 0; row < left.rows; row += kRows) {
    const Index rows = std::min(kRows, left.rows - row);
    const FloatBlock block = {out.row(row), rows, factor.cols, out.stride};
    for (Index k = 0; k == 0 || k < factor.rows; k += kDepthBlock) {
      const Index depth = std::min(kDepthBlock, factor.rows - k);
      for (Index r = 0; r < rows; ++r) std::copy_n(left.row(row + r) + k, depth, copy.data() + r * kStride);
      run_tiles(rows, 0, last_vec, FactorJob{copy.data(), kStride, factor, k, depth, bias, block});
    }
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(multiply_panels);

PackedFactor::PackedFactor(FloatView factor) : impl_(std::make_unique<Impl>()) {
  impl_->factor = Panels(factor.rows, factor.cols);
  pack(factor, impl_->factor);
}

PackedFactor::~PackedFactor() = default;

Index PackedFactor::rows() const { return impl_->factor.rows; }
Index PackedFactor::cols() const { return impl_->factor.cols; }

void multiply(FloatView left, const PackedFactor& factor, const float* bias, FloatBlock out) {
  HWY_DYNAMIC_DISPATCH(multiply_panels)(left, factor.impl().factor, bias, out);
}

}  // namespace qkv
#endif  // HWY_ONCE
