#include "core/attention/position.h"

#include <bit>
#include <cmath>
#include <cstdlib>

namespace qkv {

double rope_frequency(const Rope& rope, Index pair, Index d) {
  return std::pow(static_cast<double>(rope.base), -2.0 * static_cast<double>(pair) / static_cast<double>(d));
}

void rotate_rows(MatrixD& rows, const Rope& rope, Index first) {
  const Index d = rows.cols(), pairs = d / 2;
  const bool half = rope.style == RopeStyle::kHalf;
  for (Index i = 0; i < pairs; ++i) {
    const Index left = half ? i : 2 * i, right = half ? i + pairs : 2 * i + 1;
    const double frequency = rope_frequency(rope, i, d);
    for (Index row = first == 0 ? 1 : 0; row < rows.rows(); ++row) {
      const double angle = static_cast<double>(first + row) * frequency;
      const double cosine = std::cos(angle), sine = std::sin(angle);
      const double x = rows(row, left), y = rows(row, right);
      rows(row, left) = x * cosine - y * sine;
      rows(row, right) = y * cosine + x * sine;
    }
  }
}

MatrixD positioned(const Matrix& rows, const std::optional<Rope>& rope, Index first) {
  MatrixD result = rows.cast<double>();
  if (rope) rotate_rows(result, *rope, first);
  return result;
}

double alibi_slope(int head, int heads) {
  const auto power = static_cast<int>(std::bit_floor(static_cast<unsigned>(heads)));
  if (head < power) return std::exp2(-8.0 * (head + 1) / power);
  return std::exp2(-8.0 * (2 * (head - power) + 1) / (2.0 * power));
}

Matrix alibi_term(int head, int heads, Index nq, Index nk, Index shift) {
  const double slope = alibi_slope(head, heads);
  Matrix term(nq, nk);
  for (Index i = 0; i < nq; ++i) {
    for (Index j = 0; j < nk; ++j)
      term(i, j) = static_cast<float>(0 - slope * static_cast<double>(std::abs(i + shift - j)));
  }
  return term;
}

}  // namespace qkv
