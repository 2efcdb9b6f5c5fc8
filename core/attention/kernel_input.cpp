#include "core/attention/kernel_input.h"

#include "core/attention/position.h"

namespace qkv {

KernelScaling kernel_scaling(const AttentionOptions& options, const Shapes& shapes, int head) {
  KernelScaling scaling;
  scaling.scale = static_cast<float>(effective_scale(options, shapes.d_k));
  scaling.softcap = options.softcap.value_or(0.0f);
  if (options.alibi) scaling.slope = static_cast<float>(alibi_slope(head, shapes.heads));
  if (options.bias) scaling.bias = view_of(**options.bias);
  scaling.shift = query_shift(options, shapes.nq, shapes.nk);
  return scaling;
}

KernelMask kernel_mask(const AttentionOptions& options, const Shapes& shapes) {
  KernelMask mask;
  mask.causal = options.causal;
  mask.window = options.window.value_or(0);
  mask.shift = query_shift(options, shapes.nq, shapes.nk);
  mask.key_valid = options.key_valid.empty() ? nullptr : options.key_valid.data();
  return mask;
}

HeadInput sample_rows(const HeadInput& input, Index first, Index count, Index step) {
  HeadInput sample = input;
  const auto view = [&](const FloatView& whole) {
    return FloatView{whole.row(first), count, whole.cols, whole.stride * step};
  };
  sample.q = view(input.q);
  if (input.scaling.bias) sample.scaling.bias = view(input.scaling.bias);
  sample.scaling.shift += first * input.scaling.step;
  sample.scaling.step *= step;
  sample.mask.shift += first * input.mask.step;
  sample.mask.step *= step;
  return sample;
}

}  // namespace qkv
