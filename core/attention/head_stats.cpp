#include "core/attention/head_stats.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qkv {

double row_entropy(std::span<const float> weights) {
  using Part = Eigen::Map<const Eigen::Array<float, 1, Eigen::Dynamic>>;
  constexpr float kLeast = std::numeric_limits<float>::min();
  // Parts short enough that their float32 sums are off by less than the logarithms are.
  constexpr std::size_t kPart = 64;
  double entropy = 0;
  for (std::size_t first = 0; first < weights.size(); first += kPart) {
    const Part part(weights.data() + first, static_cast<Index>(std::min(kPart, weights.size() - first)));
    if (std::isnan(part.sum()) || part.minCoeff() < 0) return std::numeric_limits<double>::quiet_NaN();
    entropy -= static_cast<double>((part * part.max(kLeast).log()).sum());  // a·ln a → 0 for a → 0
  }
  return entropy;
}

void HeadStatsSum::add(std::span<const float> weights, Index row, Index visible) {
  if (visible == 0) return;
  RowWeights of_row = {visible, row_entropy(weights), weights[0], {}, {}};
  const Index own = row + shift_, keys = static_cast<Index>(weights.size());
  if (own >= 0 && own < keys) of_row.own = weights[static_cast<std::size_t>(own)];
  if (own >= 1 && own <= keys) of_row.previous = weights[static_cast<std::size_t>(own - 1)];
  add(of_row);
}

void HeadStatsSum::add(const RowWeights& row) {
  if (row.visible == 0 || std::isnan(row.entropy)) return;
  entropy_.add(row.entropy);
  max_entropy_.add(std::log(static_cast<double>(row.visible)));
  first_.add(static_cast<double>(row.first));
  // Rows whose own or previous key does not exist say nothing about these two.
  if (row.own) diagonal_.add(static_cast<double>(*row.own));
  if (row.previous) previous_.add(static_cast<double>(*row.previous));
}

HeadStats HeadStatsSum::value() const {
  return {entropy_.value(), max_entropy_.value(), previous_.value(), first_.value(), diagonal_.value()};
}

HeadStats head_stats(ConstMatrixRef attn, std::span<const Index> visible, Index shift) {
  HeadStatsSum sum(shift);
  for (Index row = 0; row < attn.rows(); ++row) {
    sum.add({attn.row(row).data(), static_cast<std::size_t>(attn.cols())}, row, visible[static_cast<std::size_t>(row)]);
  }
  return sum.value();
}

}  // namespace qkv
