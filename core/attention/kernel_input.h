// What the float32 kernels read: a session's options as they want them, and matrices as they see them.
#pragma once

#include "core/attention/kernels/head_kernel.h"
#include "core/attention/source.h"

namespace qkv {

// For one query head. Refer to the bias and key_valid of `options`: not longer than they live.
KernelScaling kernel_scaling(const AttentionOptions& options, const Shapes& shapes, int head);
KernelMask kernel_mask(const AttentionOptions& options, const Shapes& shapes);

// Rows first, first + step, … of a head, as a head of `count` queries whose results are those of these rows.
HeadInput sample_rows(const HeadInput& input, Index first, Index count, Index step = 1);

inline FloatView view_of(const Matrix& matrix) { return {matrix.data(), matrix.rows(), matrix.cols(), matrix.cols()}; }
inline FloatBlock block_of(Matrix& matrix) { return {matrix.data(), matrix.rows(), matrix.cols(), matrix.cols()}; }
inline FloatBlock block_of(MatrixRef& matrix) {
  return {matrix.data(), matrix.rows(), matrix.cols(), matrix.outerStride()};
}
// Part of a block.
inline FloatBlock block_of(const FloatBlock& whole, const Rect& rect) {
  return {whole.row(rect.row) + rect.col, rect.rows, rect.cols, whole.stride};
}

}  // namespace qkv
