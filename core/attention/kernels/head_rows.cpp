#include "core/attention/kernels/head_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/attention/kernels/softmax_exponent.h"

namespace qkv {

KeyRange joint_range(const KernelMask& mask, Index first, Index count, Index nk) {
  KeyRange joint;
  for (Index row = first; row < first + count; ++row) {
    const KeyRange range = visible_range(mask, row, nk);
    if (range.first == range.last) continue;
    if (joint.first == joint.last) joint = range;
    joint = {std::min(joint.first, range.first), std::max(joint.last, range.last)};
  }
  return joint;
}

float power_of_two(std::int32_t exponent) {
  return exponent < -126 ? 0.0f : std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
}

void raise_exponent(OnlineRow& row, float max, std::int32_t exponent) {
  row.max = std::max(row.max, max);
  if (exponent <= row.exponent) {
    row.rescale = 1;
    return;
  }
  row.rescale = power_of_two(row.exponent - exponent);
  row.sum = std::ldexp(row.sum, row.exponent - exponent);
  row.exponent = exponent;
}

Index block_rows(const HeadInput& input, bool whole_rows) {
  constexpr Index kFew = 12, kMany = 48, kCells = 1 << 16;
  if (!whole_rows) return kMany;
  return std::clamp(kCells / std::max<Index>(input.kv->keys(), 1) / kGroupRows * kGroupRows, kFew, kMany);
}

}  // namespace qkv
