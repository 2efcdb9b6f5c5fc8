// What the window shows beside the matrices of a trace, worked out once per trace.
#pragma once

#include <vector>

#include "core/attention/forward.h"
#include "core/attention/head_stats.h"
#include "core/figure/range.h"

namespace qkv {

// Matrices that share one colour scale in the window.
enum class ScaleGroup { kWeights, kScores, kValues, kMask };
ScaleGroup scale_group(MatrixKind kind);

struct TraceDigest {
  std::vector<HeadStats> heads;      // H
  FiniteExtent weights, scores, values;
  TraceWarnings warnings;
  Index hidden = 0;                  // hidden cells of the mask
  double worst_row_sum = 0;          // largest |Σ weights − 1| over live rows; NaN rows are left out
};

TraceDigest digest(const Trace& trace);
const FiniteExtent& extent_of(const TraceDigest& digest, ScaleGroup group);

}  // namespace qkv
