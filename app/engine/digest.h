// What the window shows beside the matrices of a trace, worked out once per trace.
#pragma once

#include <array>
#include <vector>

#include "app/engine/row_digest.h"
#include "core/attention/update.h"
#include "core/figure/range.h"
#include "core/figure/scale_group.h"

namespace qkv {

// What is worked out of one head.
struct HeadDigest {
  HeadStats stats;
  bool sampled = false;                  // the statistics are of some rows only, spread evenly: the head is streamed
  FiniteExtent weights, scores, values;  // visible weights; S and scaled; Q, K, V and O
  FiniteExtent outputs;                  // O alone
  double worst_row_sum = 0;              // see TraceDigest
  Index unnormalised_rows = 0;           // of given weights: rows that do not sum to 1
  std::vector<RowDigest> rows = {};      // Nq, of the float32 path: what the next edit keeps
};

struct TraceDigest {
  std::vector<HeadDigest> heads;                   // H
  std::array<FiniteExtent, kScaleGroups> extents;  // by ScaleGroup
  TraceWarnings warnings;
  Index hidden = 0;          // hidden cells of the mask
  bool refining = false;     // a streamed trace that is not complete: no statistics yet, and extents of a sample
  double worst_row_sum = 0;  // largest |Σ weights − expected_row_sum()| over live rows; NaN rows left out
};

// On `pool` where there is one. What `report` says is as it was in the trace of `previous` is taken from that digest,
// which is of no use then.
TraceDigest digest(const Trace& trace, ThreadPool* pool = nullptr, TraceDigest* previous = nullptr,
                   const UpdateReport& report = {});
inline const FiniteExtent& extent_of(const TraceDigest& digest, ScaleGroup group) {
  return digest.extents[static_cast<std::size_t>(group)];
}

}  // namespace qkv
