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
inline constexpr Index kDepthBlock = 512;

// What a cell of a tile is before the products of a depth block are added: nothing, a bias, or those of earlier blocks.
struct Earlier {
  const float* cells = nullptr;
  Index stride = 0;  // 0: all rows begin with the same
};

struct StoreProducts {
  float* to;
  Index stride;
  Earlier earlier;
  template <size_t kVecs>
  HWY_INLINE void row(Index r, const V* sums) const {
    const F d;
    float* const cells = to + r * stride;
    const float* const before = earlier.cells + (earlier.cells != nullptr ? r * earlier.stride : 0);
#pragma GCC unroll 8  // sums are registers, which have no index
    for (size_t v = 0; v < kVecs; ++v) {
      const Index col = static_cast<Index>(v) * kStep;
      hn::StoreU(earlier.cells != nullptr ? hn::Add(hn::LoadU(d, before + col), sums[v]) : sums[v], d, cells + col);
    }
  }
};

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
    constexpr auto kColumns = static_cast<Index>(kVecs) * kStep;
    HWY_ALIGN float tile[kRows * kVecs * kLanes];
    const Index col = vec * kStep, cols = std::min(kColumns, out.cols - col);
    const float* const right = factor.panel(col / kPanel) + depth_first * kPanel + col % kPanel;
    for (; row < end; row += static_cast<Index>(kRows)) {
      float* const to = out.row(row) + col;
      Earlier earlier;
      if (bias != nullptr) earlier = {bias + col, 0};
      if (depth_first > 0) earlier = {to, out.stride};
      // Beyond the last column there is no room for whole vectors.
      const bool whole = cols == kColumns;
      const StoreProducts store = {whole ? to : tile, whole ? out.stride : kColumns, whole ? earlier : Earlier()};
      multiply_tile<kRows, kVecs>(left + row * left_stride, left_stride, right, factor.panel_stride(), depth, store);
      if (!whole) add_tile(tile, kColumns, static_cast<Index>(kRows), cols, earlier, to);
    }
  }

  void add_tile(const float* tile, Index stride, Index rows, Index cols, const Earlier& earlier, float* to) const {
    for (Index r = 0; r < rows; ++r) {
      for (Index c = 0; c < cols; ++c) {
        const float sum = tile[r * stride + c];
        to[r * out.stride + c] = earlier.cells != nullptr ? earlier.cells[r * earlier.stride + c] + sum : sum;
      }
    }
  }
};

void multiply_panels(FloatView left, const Panels& factor, const float* bias, FloatBlock out) {
  const Index last_vec = (factor.cols + kStep - 1) / kStep;
  for (Index k = 0; k == 0 || k < factor.rows; k += kDepthBlock) {
    const Index depth = std::min(kDepthBlock, factor.rows - k);
    run_tiles(left.rows, 0, last_vec, FactorJob{left.data + k, left.stride, factor, k, depth, bias, out});
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(multiply_panels);

PackedFactor::PackedFactor(FloatView factor)
    : PackedFactor(factor, [](Index parts, const std::function<void(Index)>& pack_part) {
        for (Index part = 0; part < parts; ++part) pack_part(part);
      }) {}

PackedFactor::PackedFactor(FloatView factor, const ForEachPart& for_each) : impl_(std::make_unique<Impl>()) {
  constexpr Index kColumns = 4 * kPanel;  // of a part
  impl_->factor.resize(factor.rows, factor.cols);
  for_each((factor.cols + kColumns - 1) / kColumns, [&](Index part) {
    const Index first = part * kColumns, cols = std::min(kColumns, factor.cols - first);
    pack_panels({factor.data + first, factor.rows, cols, factor.stride}, impl_->factor.at(0, first));
  });
}

PackedFactor::~PackedFactor() = default;

Index PackedFactor::rows() const { return impl_->factor.rows; }
Index PackedFactor::cols() const { return impl_->factor.cols; }

void multiply(FloatView left, const PackedFactor& factor, const float* bias, FloatBlock out) {
  HWY_DYNAMIC_DISPATCH(multiply_panels)(left, factor.impl().factor, bias, out);
}

}  // namespace qkv
#endif  // HWY_ONCE
