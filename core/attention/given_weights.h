// Attention weights that come from elsewhere, without Q, K and V: what can be said of them, and their trace.
#pragma once

#include "core/attention/update.h"

namespace qkv {

// A row of given weights sums to 1 when it is off by at most so much: what rounding each weight to bfloat16 may do.
inline constexpr double kGivenRowTolerance = 1.0 / 512;

// Shares the numbers with the matrix: weights of many tokens are not held twice.
LazyMatrix shared_cells(const SharedMatrix& matrix);

// The trace of a problem with a WeightsSource: attn as given, never normalised, NaN included; keep with every key
// visible. It has no other matrix. `rows` hold the sum of each row as its denominator.
Trace given_trace(const Problem& problem, const Shapes& shapes);

// The same from the trace before an edit: heads whose weights are still the same matrix are taken over, and `report`
// says which.
Trace update_given(Trace before, const Problem& edited, const Shapes& shapes, UpdateReport& report);

// Rows whose finite sum is not 1, of a head of given weights and of all heads; 0 where the weights were computed.
Index count_unnormalised(const Trace& trace, int head);
Index count_unnormalised(const Trace& trace);

// Where one weight stands in its row.
struct WeightPlace {
  double sum = 0;  // of the row
  Index rank = 0;  // 1 = no weight is larger; 0 where the weight is NaN
  Index keys = 0;  // weights that are not NaN
};
WeightPlace place_in_row(std::span<const float> weights, Index col);

}  // namespace qkv
