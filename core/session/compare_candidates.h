// The arrays of a file that could be a matrix of ours, by their shapes alone.
#pragma once

#include <span>
#include <vector>

#include "core/session/compare.h"

namespace qkv {

// Arrays that compare_arrays() reads as the kind, and their parts along the first axes of those that have more, in the
// file's order; at most kMostCandidates. `heads`: those of the queries.
inline constexpr std::size_t kMostCandidates = 512;
struct ArrayCandidate {
  NamePair pair;
  const TensorInfo* array = nullptr;  // of `arrays`
};
std::vector<ArrayCandidate> candidates_for(std::span<const TensorInfo> arrays, MatrixKind kind, const KindShape& shape,
                                           int heads);

}  // namespace qkv
