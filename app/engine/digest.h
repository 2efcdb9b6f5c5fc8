// What the window shows beside the matrices of a trace, worked out once per trace.
#pragma once

#include <array>
#include <vector>

#include "core/attention/forward.h"
#include "core/attention/head_stats.h"
#include "core/figure/range.h"

namespace qkv {

// Matrices that share one colour scale in the window.
enum class ScaleGroup {
  kWeights,     // A
  kScores,      // S, ALiBi, B, scaled: on one scale, so that scaling is seen to shrink
  kValues,      // Q, K, V, O
  kInput,       // X
  kProjection,  // W^Q, W^K, W^V and their biases
  kConcat,
  kWo,  // W^O, b^O
  kOut,
  kMask,
};
inline constexpr std::size_t kScaleGroups = 9;
ScaleGroup scale_group(MatrixKind kind);

struct TraceDigest {
  std::vector<HeadStats> heads;                    // H
  std::array<FiniteExtent, kScaleGroups> extents;  // by ScaleGroup
  TraceWarnings warnings;
  Index hidden = 0;          // hidden cells of the mask
  double worst_row_sum = 0;  // largest |Σ weights − expected_row_sum()| over live rows; NaN rows left out
};

TraceDigest digest(const Trace& trace);
inline const FiniteExtent& extent_of(const TraceDigest& digest, ScaleGroup group) {
  return digest.extents[static_cast<std::size_t>(group)];
}

}  // namespace qkv
