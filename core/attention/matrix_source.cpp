#include "core/attention/matrix_source.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qkv {
namespace {

float reduce_block(const ConstMatrixRef& cells, Reduction how) {
  // Whole vectors, where no cell is NaN or infinite.
  if (const double all = cells.cast<double>().sum(); std::isfinite(all)) {
    return how == Reduction::kMax ? cells.maxCoeff() : static_cast<float>(all / static_cast<double>(cells.size()));
  }
  double sum = 0;
  float largest = -std::numeric_limits<float>::infinity();
  Index count = 0;
  for (Index r = 0; r < cells.rows(); ++r) {
    for (Index c = 0; c < cells.cols(); ++c) {
      const float value = cells(r, c);
      if (std::isnan(value)) continue;
      sum += static_cast<double>(value);
      largest = std::max(largest, value);
      ++count;
    }
  }
  if (count == 0) return std::numeric_limits<float>::quiet_NaN();
  return how == Reduction::kMax ? largest : static_cast<float>(sum / static_cast<double>(count));
}

}  // namespace

void DenseSource::read(const Rect& rect, MatrixRef out) const {
  out = matrix_->block(rect.row, rect.col, rect.rows, rect.cols);
}

void reduce_cells(ConstMatrixRef cells, Index side, Reduction how, MatrixRef out) {
  for (Index r = 0; r < out.rows(); ++r) {
    for (Index c = 0; c < out.cols(); ++c) {
      const Index rows = std::min(side, cells.rows() - r * side), cols = std::min(side, cells.cols() - c * side);
      out(r, c) = reduce_block(cells.block(r * side, c * side, rows, cols), how);
    }
  }
}

void DenseSource::reduce(const Rect& rect, int level, Reduction how, MatrixRef out) const {
  const Index side = Index{1} << std::clamp(level, 0, 40);  // 2^40 is more than any matrix has rows
  reduce_cells(matrix_->block(rect.row, rect.col, rect.rows, rect.cols), side, how, out);
}

}  // namespace qkv
