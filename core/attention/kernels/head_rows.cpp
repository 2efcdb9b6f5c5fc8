#include "core/attention/kernels/head_rows.h"

#include <algorithm>

namespace qkv {

Index block_rows(const HeadInput& input, bool whole_rows) {
  constexpr Index kFew = 12, kMany = 48, kCells = 1 << 16, kLong = 1024;
  if (!whole_rows) return input.kv->keys() >= kLong ? 2 * kMany : kMany;
  return std::clamp(kCells / std::max<Index>(input.kv->keys(), 1) / kGroupRows * kGroupRows, kFew, kMany);
}

}  // namespace qkv
