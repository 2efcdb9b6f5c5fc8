// Somebody else's array read as the matrices of one kind, whatever the order of its axes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/attention/difference.h"
#include "core/tensor_io/npy.h"

namespace qkv {

struct ArrayReading {
  OtherMatrix matrix;
  std::string words;  // "[H, N, d]"
};

// The shapes of arrays that read_array takes for a kind, axes of length 1 in front left out.
std::vector<std::vector<std::uint64_t>> shapes_read(MatrixKind kind, const KindShape& shape, int heads);

// All that fit, the usual one first; at least one, or kBadInput naming the array, its shape and what is expected.
// `shape` is what the kind has; `heads` the query heads.
Result<std::vector<ArrayReading>> read_array(const Tensor64& tensor, std::string_view name, MatrixKind kind,
                                             const KindShape& shape, int heads);

}  // namespace qkv
