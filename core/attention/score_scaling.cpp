#include "core/attention/score_scaling.h"

#include <cmath>
#include <cstdlib>

#include "core/attention/position.h"

namespace qkv {

ScoreScaling::ScoreScaling(const AttentionOptions& options, const Shapes& shapes, int head)
    : scale_(effective_scale(options, shapes.d_k)),
      softcap_(options.softcap),
      slope_(options.alibi ? alibi_slope(head, shapes.heads) : 0.0),
      bias_(options.bias ? &options.bias->get() : nullptr),
      shift_(query_shift(options, shapes.nq, shapes.nk)) {}

void ScoreScaling::apply(std::span<double> scores, Index row) const {
  for (double& score : scores) score *= scale_;
  if (!softcap_ && slope_ == 0 && !bias_) return;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const auto key = static_cast<Index>(j);
    if (softcap_) scores[j] = *softcap_ * std::tanh(scores[j] / *softcap_);
    if (slope_ != 0) scores[j] -= slope_ * static_cast<double>(std::abs(row + shift_ - key));
    if (bias_) scores[j] += static_cast<double>((*bias_)(row, key));
  }
}

ScaledSteps ScoreScaling::steps(double score, Index row, Index key) const {
  ScaledSteps result;
  result.after_scale = score * scale_;
  result.after_softcap = softcap_ ? *softcap_ * std::tanh(result.after_scale / *softcap_) : result.after_scale;
  result.value = result.after_softcap;
  if (slope_ != 0) {
    result.alibi = -slope_ * static_cast<double>(std::abs(row + shift_ - key));
    result.value += result.alibi;
  }
  if (bias_) {
    result.bias = static_cast<double>((*bias_)(row, key));
    result.value += result.bias;
  }
  return result;
}

}  // namespace qkv
