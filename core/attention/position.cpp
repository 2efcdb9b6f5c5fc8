#include "core/attention/position.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

namespace qkv {

double rope_frequency(const Rope& rope, Index pair, Index d) {
  return std::pow(static_cast<double>(rope.base), -2.0 * static_cast<double>(pair) / static_cast<double>(d));
}

RowRotation::RowRotation(const Rope& rope, Index d) : is_half_(rope.style == RopeStyle::kHalf) {
  for (Index pair = 0; pair < d / 2; ++pair) frequencies_.push_back(rope_frequency(rope, pair, d));
}

void RowRotation::turn(std::span<double> row, Index position) const {
  std::vector<Angle> angles;
  find_angles(position, angles);
  turn(row, angles);
}

void RowRotation::find_angles(Index position, std::vector<Angle>& angles) const {
  angles.clear();
  if (position == 0) return;
  for (const double frequency : frequencies_) {
    const double angle = static_cast<double>(position) * frequency;
    angles.push_back({std::cos(angle), std::sin(angle)});
  }
}

void RowRotation::turn(std::span<double> row, std::span<const Angle> angles) const {
  const std::size_t pairs = angles.size();
  for (std::size_t i = 0; i < pairs; ++i) {
    double& left = row[is_half_ ? i : 2 * i];
    double& right = row[is_half_ ? i + pairs : 2 * i + 1];
    const double x = left, y = right;
    left = x * angles[i].cosine - y * angles[i].sine;
    right = y * angles[i].cosine + x * angles[i].sine;
  }
}

void rotate_rows(MatrixD& rows, const Rope& rope, Index first) {
  const RowRotation rotation(rope, rows.cols());
  const auto size = static_cast<std::size_t>(rows.cols());
  for (Index row = 0; row < rows.rows(); ++row) rotation.turn({rows.row(row).data(), size}, first + row);
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

void AlibiCells::read(const Rect& rect, MatrixRef out) const {
  const double slope = alibi_slope(head_, heads_);
  for (Index r = 0; r < rect.rows; ++r) {
    for (Index c = 0; c < rect.cols; ++c) {
      const Index distance = std::abs(rect.row + r + shift_ - rect.col - c);
      out(r, c) = static_cast<float>(0 - slope * static_cast<double>(distance));
    }
  }
}

void AlibiCells::reduce(const Rect& rect, int level, Reduction how, MatrixRef out) const {
  const Index side = Index{1} << std::clamp(level, 0, 40);  // 2^40 is more than any matrix has rows
  for (Index row = 0; row < out.rows(); ++row) {
    Matrix cells(std::min(side, rect.rows - row * side), rect.cols);
    read({rect.row + row * side, rect.col, cells.rows(), cells.cols()}, cells);
    reduce_cells(cells, side, how, out.middleRows(row, 1));
  }
}

}  // namespace qkv
