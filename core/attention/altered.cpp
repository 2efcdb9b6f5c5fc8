#include "core/attention/altered.h"

namespace qkv {

Altered unaltered(const Problem& problem, const Shapes& shapes) {
  const AttentionOptions& options = problem.options;
  Altered ours;
  ours.inputs.rope = options.rope;
  ours.scaling.scale = effective_scale(options, shapes.d_k);
  if (options.softcap) ours.scaling.softcap = static_cast<double>(*options.softcap);
  ours.scaling.alibi = options.alibi ? 1 : 0;
  ours.mask.causal = options.causal;
  ours.mask.shift = query_shift(options, shapes.nq, shapes.nk);
  ours.mask.before = ours.mask.after = options.window;
  ours.softmax.sink.assign(options.sink.begin(), options.sink.end());
  return ours;
}

}  // namespace qkv
