// The steps from a raw score to the one that softmax sees: scale, softcap, ALiBi, bias.
#pragma once

#include <optional>
#include <span>

#include "core/attention/source.h"

namespace qkv {

// One score on its way.
struct ScaledSteps {
  double after_scale = 0;
  double after_softcap = 0;  // after_scale where there is no softcap
  double alibi = 0;          // added: −slope·|i − j|, 0 without ALiBi
  double bias = 0;           // added: 0 without a bias
  double value = 0;
};

// The steps of one head. Refers to the options' bias: not longer than they live.
class ScoreScaling {
 public:
  ScoreScaling(const AttentionOptions& options, const Shapes& shapes, int head);

  // The raw scores of query row `row`, [Nk], in place.
  void apply(std::span<double> scores, Index row) const;
  // The same for one key, with what came between: the same operations in the same order.
  ScaledSteps steps(double score, Index row, Index key) const;

 private:
  double scale_;
  std::optional<double> softcap_;
  double slope_ = 0;
  const Matrix* bias_ = nullptr;
  Index shift_;
};

}  // namespace qkv
