#include "core/figure/label_step.h"

#include <algorithm>

namespace qkv {
namespace {

Index round_step(double apart) {
  for (Index power = 1;; power *= 10) {
    for (const Index factor : {Index{1}, Index{2}, Index{5}}) {
      if (static_cast<double>(factor * power) >= apart) return factor * power;
    }
  }
}

}  // namespace

LabelSteps label_steps(Index count, double apart, const std::function<std::string(Index)>& label) {
  // One label is enough where not even two have room.
  const Index step = round_step(std::min(apart, static_cast<double>(count)));
  const bool counts_from_1 = step <= count && label(step - 1) == std::to_string(step);
  return {counts_from_1 ? step - 1 : 0, step};
}

}  // namespace qkv
