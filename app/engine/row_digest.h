// What the window tells of a head of the float32 path, row by row: an edit digests again only the rows that it changed.
#pragma once

#include <vector>

#include "core/attention/head_stats.h"
#include "core/attention/trace.h"
#include "core/figure/range.h"

namespace qkv {

// One query row.
struct RowDigest {
  RowWeights weights;      // what HeadStats are made of
  FiniteExtent visible;    // visible weights
  FiniteExtent scores;     // S and scaled, hidden cells too
  double row_sum_off = 0;  // |Σ weights − expected_row_sum()|; 0 in a dead row, NaN where a weight is
};

// Query rows [first, first + count) of a head, to the same places of `rows` [Nq]. Different rows may run on different
// threads. The trace has kernels.
void digest_rows(const Trace& trace, int head, Index first, Index count, std::vector<RowDigest>& rows);

}  // namespace qkv
