// A session compared with another file, and the matrices to show of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "core/session/compare.h"

namespace qkv {

struct CompareRequest {
  Session session;
  std::filesystem::path other;       // a session or tensors, told apart by content
  std::uint64_t version = 0;         // another for each request: of the result
  std::vector<NamePair> names = {};  // of arrays whose names say something else, or nothing
};

// Immutable once it is shown.
struct CompareResult {
  Session session;
  std::filesystem::path other;
  Comparison comparison;
  std::vector<std::vector<Matrix>> ours, theirs;  // of each array, by head; one for a mean over the heads
  std::uint64_t version = 0;
  std::vector<TensorInfo> arrays;  // of the file, to choose from; none of a session, or where ours has only weights
  std::string failure;             // why none of them is compared; empty where some are
};

// Where the arrays of a file cannot be compared the result says why; other errors bear the name of `other`.
Result<std::shared_ptr<const CompareResult>> compare_with_file(const CompareRequest& request, const StopFlag* stop);

}  // namespace qkv
