#include "core/attention/softmax.h"

#include <algorithm>
#include <cmath>

namespace qkv {

RowStats softmax_row(std::span<const double> scaled, std::span<const std::uint8_t> keep, std::span<double> weights) {
  const std::size_t count = scaled.size();
  RowStats stats;
  for (std::size_t j = 0; j < count; ++j) {
    if (!keep[j]) continue;
    const double score = scaled[j];
    // The first visible score starts the maximum, and a NaN stays: no comparison with it is true.
    if (stats.visible == 0 || score > stats.max || std::isnan(score)) stats.max = score;
    ++stats.visible;
  }
  if (stats.visible == 0) {
    std::fill(weights.begin(), weights.end(), 0.0);
    return stats;
  }
  for (std::size_t j = 0; j < count; ++j) {
    weights[j] = keep[j] ? std::exp(scaled[j] - stats.max) : 0.0;
    stats.denominator += weights[j];
  }
  // Hidden cells are 0 by rule: 0 / NaN would be NaN.
  for (std::size_t j = 0; j < count; ++j) {
    if (keep[j]) weights[j] /= stats.denominator;
  }
  return stats;
}

}  // namespace qkv
