#include "core/attention/kernels/head_rows.h"

#include <algorithm>
#include <bit>

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

Index block_rows(const HeadInput& input, bool whole_rows) {
  constexpr Index kFew = 12, kMany = 48, kCells = 1 << 16, kLong = 4096;
  if (!whole_rows) return input.kv->keys() >= kLong ? 2 * kMany : kMany;
  return std::clamp(kCells / std::max<Index>(input.kv->keys(), 1) / kGroupRows * kGroupRows, kFew, kMany);
}

}  // namespace qkv
