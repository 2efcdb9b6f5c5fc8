// What is told of rows of numbers, in one reading on the best SIMD target.
#pragma once

#include "core/attention/rect.h"

namespace qkv {

inline constexpr float kNoLow = __builtin_huge_valf(), kNoHigh = -__builtin_huge_valf();

// Smallest and largest of some cells. Where not all are finite, anything.
struct FloatExtent {
  float low = kNoLow, high = kNoHigh;
  bool all_finite = true;
};
FloatExtent float_extent(const float* cells, Index count);

// Of visible weights of a row.
struct WeightSummary {
  double sum = 0, entropy = 0;  // Σ a and −Σ a·ln a, each off by less than 3e-7 of itself
  float low = kNoLow, high = kNoHigh;
  float positive = kNoLow;  // the smallest above 0
};
// Adds `count` weights that lack `factor`. All finite.
void add_weights(const float* cells, Index count, float factor, WeightSummary& summary);

}  // namespace qkv
