// What the float32 kernels read: a session's options as they want them, and matrices as they see them.
#pragma once

#include "core/attention/kernels/head_kernel.h"
#include "core/attention/source.h"

namespace qkv {

// `rows` as the kernels read them: turned where there is a rope (in float64, rounded once).
SharedMatrix rotated(const SharedMatrix& rows, const std::optional<Rope>& rope);

// One query head; `q` is rotated. Refers to all but the shapes: not longer than they live.
HeadInput head_input(const Matrix& q, const PackedKeyValues& kv, const AttentionOptions& options, const Shapes& shapes,
                     int head);
// Refers to key_valid of `options`.
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
