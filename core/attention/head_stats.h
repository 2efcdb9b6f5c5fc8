// Numbers that tell at a glance what a head does.
#pragma once

#include "core/attention/matrix.h"

namespace qkv {

// Means over the live rows of one head's weights; NaN rows are left out. All 0 without live rows.
struct HeadStats {
  double entropy = 0;         // −Σ a·ln a in nats
  double max_entropy = 0;     // ln(visible keys): the entropy of uniform attention
  double previous_token = 0;  // weight on key i − 1, rows i ≥ 1
  double first_token = 0;     // weight on key 0
  double diagonal = 0;        // weight on key i
};

// `attn` and `keep` [Nq, Nk]; `shift` = Nk − Nq where the last query is aligned with the last key, else 0.
HeadStats head_stats(ConstMatrixRef attn, ConstMatrixRef keep, Index shift);

// Entropy of one row of weights in nats; NaN if a weight is NaN.
double row_entropy(ConstMatrixRef attn, Index row);

}  // namespace qkv
