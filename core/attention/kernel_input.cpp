#include "core/attention/kernel_input.h"

#include "core/attention/position.h"

namespace qkv {
namespace {

KernelScaling kernel_scaling(const AttentionOptions& options, const Shapes& shapes, int head) {
  KernelScaling scaling;
  scaling.scale = static_cast<float>(effective_scale(options, shapes.d_k));
  scaling.softcap = options.softcap.value_or(0.0f);
  if (options.alibi) scaling.slope = static_cast<float>(alibi_slope(head, shapes.heads));
  if (options.bias) scaling.bias = view_of(**options.bias);
  scaling.shift = query_shift(options, shapes.nq, shapes.nk);
  return scaling;
}

}  // namespace

SharedMatrix rotated(const SharedMatrix& rows, const std::optional<Rope>& rope) {
  return rope ? SharedMatrix(Matrix(positioned(*rows, rope).cast<float>())) : rows;
}

KernelMask kernel_mask(const AttentionOptions& options, const Shapes& shapes) {
  KernelMask mask;
  mask.causal = options.causal;
  mask.window = options.window.value_or(0);
  mask.shift = query_shift(options, shapes.nq, shapes.nk);
  mask.key_valid = options.key_valid.empty() ? nullptr : options.key_valid.data();
  return mask;
}

HeadInput head_input(const Matrix& q, const PackedKeyValues& kv, const AttentionOptions& options, const Shapes& shapes,
                     int head) {
  HeadInput input;
  input.q = view_of(q);
  input.kv = &kv;
  input.scaling = kernel_scaling(options, shapes, head);
  input.mask = kernel_mask(options, shapes);
  if (!options.sink.empty()) input.sink = options.sink[static_cast<std::size_t>(head)];
  return input;
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
