#include "core/attention/kernel_cells.h"

#include <algorithm>
#include <cmath>

namespace qkv {
namespace {

void read_scores(const KernelHead& head, const Rect& rect, MatrixRef out) {
  if (head.options.causal || head.options.window) {  // the kernels leave out what the mask hides
    score_cells(head_input(head), rect, {out.data(), rect.rows, rect.cols, out.outerStride()});
  } else {
    out = head.scores.block(rect.row, rect.col, rect.rows, rect.cols);
  }
}

void read_weights(const KernelHead& head, const Rect& rect, MatrixRef out) {
  for (Index r = 0; r < rect.rows; ++r) {
    const RowSoftmax& stats = head.rows[static_cast<std::size_t>(rect.row + r)];
    // NaN where visible already; a hidden 0 · NaN would be NaN too.
    const float factor = std::isfinite(stats.sum) ? normalizer(stats) : 1.0f;
    out.row(r) = head.weights.row(rect.row + r).segment(rect.col, rect.cols) * factor;
  }
}

}  // namespace

void KernelCells::read(const Rect& rect, MatrixRef out) const {
  if (kind_ == MatrixKind::kAttn) return read_weights(*head_, rect, out);
  read_scores(*head_, rect, out);
  if (kind_ == MatrixKind::kScaled) {
    scale_cells(head_input(*head_), rect, {out.data(), rect.rows, rect.cols, out.outerStride()});
  }
}

void KernelCells::reduce(const Rect& rect, int level, Reduction how, MatrixRef out) const {
  const Index side = Index{1} << std::clamp(level, 0, 40);  // 2^40 is more than any matrix has rows
  for (Index row = 0; row < out.rows(); ++row) {
    const Rect strip = {rect.row + row * side, rect.col, std::min(side, rect.rows - row * side), rect.cols};
    Matrix cells(strip.rows, strip.cols);
    read(strip, cells);
    DenseSource(cells).reduce({0, 0, strip.rows, strip.cols}, level, how, out.middleRows(row, 1));
  }
}

}  // namespace qkv
