#include "core/attention/options.h"

#include <cmath>

namespace qkv {

double effective_scale(const AttentionOptions& options, Index d_k) {
  return options.scale ? static_cast<double>(*options.scale) : 1.0 / std::sqrt(static_cast<double>(d_k));
}

MaskReason mask_reason(const AttentionOptions& options, Index nq, Index nk, Index i, Index j) {
  const Index shift = options.align == CausalAlign::kBottomRight ? nk - nq : 0;
  if (options.causal && j > i + shift) return MaskReason::kCausal;
  const auto key = static_cast<std::size_t>(j);
  if (key < options.key_valid.size() && options.key_valid[key] == 0) return MaskReason::kPadding;
  return MaskReason::kVisible;
}

KeepMatrix keep_matrix(const AttentionOptions& options, Index nq, Index nk) {
  KeepMatrix keep(nq, nk);
  for (Index i = 0; i < nq; ++i) {
    for (Index j = 0; j < nk; ++j) keep(i, j) = mask_reason(options, nq, nk, i, j) == MaskReason::kVisible;
  }
  return keep;
}

}  // namespace qkv
