#include "core/attention/temperature.h"

#include <cmath>

namespace qkv {

double temperature(const AttentionOptions& options, Index d_k) {
  if (!options.scale) return 1;
  return 1 / (effective_scale(options, d_k) * std::sqrt(static_cast<double>(d_k)));
}

void set_temperature(AttentionOptions& options, double t, Index d_k) {
  options.scale.reset();
  if (t != 1) options.scale = static_cast<float>(1 / (t * std::sqrt(static_cast<double>(d_k))));
}

}  // namespace qkv
