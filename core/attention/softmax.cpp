#include "core/attention/softmax.h"

#include <algorithm>
#include <cmath>

namespace qkv {

RowStats softmax_row(std::span<const double> scaled, std::span<const std::uint8_t> keep, std::span<double> weights,
                     std::optional<double> sink) {
  const std::size_t count = scaled.size();
  RowStats stats;
  stats.max = sink.value_or(0.0);
  for (std::size_t j = 0; j < count; ++j) {
    if (!keep[j]) continue;
    const double score = scaled[j];
    // The first visible score starts the maximum unless the sink does, and a NaN stays: no comparison with it is true.
    if ((stats.visible == 0 && !sink) || score > stats.max || std::isnan(score)) stats.max = score;
    ++stats.visible;
  }
  if (stats.visible == 0) {
    std::fill(weights.begin(), weights.end(), 0.0);
    return {};
  }
  for (std::size_t j = 0; j < count; ++j) {
    weights[j] = keep[j] ? std::exp(scaled[j] - stats.max) : 0.0;
    stats.denominator += weights[j];
  }
  if (sink) {
    const double exponential = std::exp(*sink - stats.max);
    stats.denominator += exponential;
    stats.sink = exponential / stats.denominator;
  }
  // Hidden cells are 0 by rule: 0 / NaN would be NaN.
  for (std::size_t j = 0; j < count; ++j) {
    if (keep[j]) weights[j] /= stats.denominator;
  }
  return stats;
}

}  // namespace qkv
