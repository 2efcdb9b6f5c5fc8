#include "core/attention/options.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/attention/kernel_input.h"

namespace qkv {

double effective_scale(const AttentionOptions& options, Index d_k) {
  return options.scale ? static_cast<double>(*options.scale) : 1.0 / std::sqrt(static_cast<double>(d_k));
}

std::optional<double> sink_of(const AttentionOptions& options, int head) {
  if (options.sink.empty()) return std::nullopt;
  return static_cast<double>(options.sink[static_cast<std::size_t>(head)]);
}

Index query_shift(const AttentionOptions& options, Index nq, Index nk) {
  return options.align == CausalAlign::kBottomRight ? nk - nq : 0;
}

MaskReason mask_reason(const AttentionOptions& options, Index nq, Index nk, Index i, Index j) {
  const Index position = i + query_shift(options, nq, nk);
  if (options.causal && j > position) return MaskReason::kCausal;
  if (options.window && std::abs(position - j) >= *options.window) return MaskReason::kWindow;
  const auto key = static_cast<std::size_t>(j);
  if (key < options.key_valid.size() && options.key_valid[key] == 0) return MaskReason::kPadding;
  return MaskReason::kVisible;
}

KeepMatrix keep_matrix(const AttentionOptions& options, Index nq, Index nk) {
  KeepMatrix keep = KeepMatrix::Zero(nq, nk);
  const KernelMask mask = kernel_mask(options, {.nq = nq, .nk = nk});
  for (Index i = 0; i < nq; ++i) {
    const KeyRange range = visible_range(mask, i, nk);
    keep.row(i).segment(range.first, range.last - range.first).setOnes();
  }
  for (std::size_t key = 0; key < std::min(options.key_valid.size(), static_cast<std::size_t>(nk)); ++key) {
    if (options.key_valid[key] == 0) keep.col(static_cast<Index>(key)).setZero();
  }
  return keep;
}

}  // namespace qkv
