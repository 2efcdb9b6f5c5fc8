#include "core/attention/kernels/gemm.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace qkv {

struct PackedFactor::Impl {
  Index rows = 0, cols = 0;
  std::vector<float> cells;
};

PackedFactor::PackedFactor(FloatView factor) : impl_(std::make_unique<Impl>()) {
  impl_->rows = factor.rows;
  impl_->cols = factor.cols;
  impl_->cells.reserve(static_cast<std::size_t>(factor.rows * factor.cols));
  for (Index row = 0; row < factor.rows; ++row) {
    impl_->cells.insert(impl_->cells.end(), factor.row(row), factor.row(row) + factor.cols);
  }
}

PackedFactor::~PackedFactor() = default;

Index PackedFactor::rows() const { return impl_->rows; }
Index PackedFactor::cols() const { return impl_->cols; }

void multiply(FloatView left, const PackedFactor& factor, const float* bias, FloatBlock out) {
  const PackedFactor::Impl& right = factor.impl();
  for (Index row = 0; row < left.rows; ++row) {
    std::fill_n(out.row(row), right.cols, 0.0f);
    for (Index k = 0; k < right.rows; ++k) {
      const float x = left.row(row)[k];
      const float* w = right.cells.data() + k * right.cols;
      for (Index c = 0; c < right.cols; ++c) out.row(row)[c] = std::fma(x, w[c], out.row(row)[c]);
    }
    for (Index c = 0; bias != nullptr && c < right.cols; ++c) out.row(row)[c] += bias[c];
  }
}

}  // namespace qkv
