#include "core/attention/matrix_source.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qkv {
namespace {

float reduce_block(const Matrix& matrix, const Rect& block, Reduction how) {
  double sum = 0;
  float largest = -std::numeric_limits<float>::infinity();
  Index count = 0;
  for (Index r = block.row; r < block.row + block.rows; ++r) {
    for (Index c = block.col; c < block.col + block.cols; ++c) {
      const float value = matrix(r, c);
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

void DenseSource::reduce(const Rect& rect, int level, Reduction how, MatrixRef out) const {
  const Index side = Index{1} << std::clamp(level, 0, 40);  // 2^40 is more than any matrix has rows
  for (Index r = 0; r < out.rows(); ++r) {
    for (Index c = 0; c < out.cols(); ++c) {
      const Rect block = {rect.row + r * side, rect.col + c * side, std::min(side, rect.rows - r * side),
                          std::min(side, rect.cols - c * side)};
      out(r, c) = reduce_block(*matrix_, block, how);
    }
  }
}

}  // namespace qkv
