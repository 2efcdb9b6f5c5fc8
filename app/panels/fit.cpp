#include "app/panels/fit.h"

#include <algorithm>

namespace qkv {

float axis_length(Index count, double cell) {
  const double n = static_cast<double>(count);
  const double least = std::min(n * kLargestCell, static_cast<double>(kSmallestSide));
  const double most = n * kLargestCell;
  // Cells this small already compete with the floor; larger ones set the length by themselves.
  return static_cast<float>(cell >= 12 ? std::min(n * cell, most) : std::clamp(n * cell, std::min(least, n * 12), most));
}

double fit_cell(std::span<const Index> counts, float room) {
  double low = 1e-3, high = kLargestCell;
  const auto total = [&](double cell) {
    double sum = 0;
    for (const Index count : counts) sum += axis_length(count, cell);
    return sum;
  };
  if (total(high) <= room) return high;
  for (int step = 0; step < 50; ++step) {
    const double middle = (low + high) / 2;
    (total(middle) <= room ? low : high) = middle;
  }
  return low;
}

}  // namespace qkv
