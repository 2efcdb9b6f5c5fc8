// The arrays of a file that could be a matrix of ours, by their shapes alone.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/session/compare.h"

namespace qkv {

// Arrays, and parts of arrays along their first axes, with as many numbers as all heads of the kind hold, or as one
// matrix of attention weights: their mean over the heads. At most kMostCandidates, in the file's order.
inline constexpr std::size_t kMostCandidates = 512;
std::vector<NamePair> candidates_for(std::span<const TensorInfo> arrays, MatrixKind kind, const KindShape& shape);

}  // namespace qkv
