#include "core/attention/kernels/head_rows.h"

#include <unistd.h>

#include <algorithm>

namespace qkv {
namespace {

// Floats that a thread's second cache holds.
Index floats_in_cache() {
  static const long bytes = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
  constexpr long kUnknown = 1 << 19;
  return static_cast<Index>(bytes > 0 ? bytes : kUnknown) / static_cast<Index>(sizeof(float));
}

}  // namespace

Index block_rows(const HeadInput& input, bool whole_rows) {
  constexpr Index kFew = 12, kMany = 48, kLong = 1024;
  if (!whole_rows) return input.kv->keys() >= kLong ? 2 * kMany : kMany;
  const Index cells = floats_in_cache() / 2;  // K and V pass through the other half
  return std::clamp(cells / std::max<Index>(input.kv->keys(), 1) / kGroupRows * kGroupRows, kFew, kMany);
}

}  // namespace qkv
