// Numbers that tell at a glance what a head does.
#pragma once

#include <optional>
#include <span>

#include "core/attention/matrix.h"

namespace qkv {

// Means over the live rows of one head's weights; rows with a NaN or a weight below 0 are left out. All 0 without live
// rows.
struct HeadStats {
  double entropy = 0;         // −Σ a·ln a in nats
  double max_entropy = 0;     // ln(visible keys): the entropy of uniform attention
  double previous_token = 0;  // weight on key i − 1, rows i ≥ 1
  double first_token = 0;     // weight on key 0
  double diagonal = 0;        // weight on key i
};

// What one row of weights adds to them.
struct RowWeights {
  Index visible = 0;                   // keys that are not hidden; 0 = dead row
  double entropy = 0;                  // NaN: the row is left out
  float first = 0;                     // weight on key 0
  std::optional<float> own, previous;  // on key i and on key i − 1, where there are such keys
};

// Makes the means row by row, for weights that are never held as a whole.
class HeadStatsSum {
 public:
  // `shift` = Nk − Nq where the last query is aligned with the last key, else 0.
  explicit HeadStatsSum(Index shift) : shift_(shift) {}
  // Weights of query `row`, [Nk], of which `visible` are not hidden.
  void add(std::span<const float> weights, Index row, Index visible);
  void add(const RowWeights& row);
  HeadStats value() const;

 private:
  struct Mean {
    double sum = 0;
    Index count = 0;
    void add(double value) {
      sum += value;
      ++count;
    }
    double value() const { return count > 0 ? sum / static_cast<double>(count) : 0.0; }
  };
  Mean entropy_, max_entropy_, previous_, first_, diagonal_;
  Index shift_;
};

// `attn` [Nq, Nk]; `visible` [Nq], keys that each query sees.
HeadStats head_stats(ConstMatrixRef attn, std::span<const Index> visible, Index shift);

// Entropy of one row of weights in nats, to 3e-7 of itself; NaN if a weight is NaN or, as given ones may be, below 0.
double row_entropy(std::span<const float> weights);

}  // namespace qkv
