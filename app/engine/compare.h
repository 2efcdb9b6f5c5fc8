// A session compared with another file off the UI thread, and the matrices to show of it.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/session/compare.h"

namespace qkv {

struct CompareRequest {
  Session session;
  std::filesystem::path other;  // a session or tensors, told apart by content
};

// Immutable once it is shown.
struct CompareResult {
  Session session;
  std::filesystem::path other;
  Comparison comparison;
  std::vector<std::vector<Matrix>> ours, theirs;  // of each array, by head; one for a mean over the heads
  std::uint64_t version = 0;                      // another for each result
};

// Errors bear the name of `other`.
Result<std::shared_ptr<CompareResult>> compare_with_file(const CompareRequest& request, const StopFlag* stop);

class CompareEngine {
 public:
  explicit CompareEngine(std::function<void()> wake);
  ~CompareEngine();
  CompareEngine(const CompareEngine&) = delete;
  CompareEngine& operator=(const CompareEngine&) = delete;

  void request(const CompareRequest& request);
  std::shared_ptr<const CompareResult> take_result();
  std::optional<Error> take_error();
  bool busy() const;
  void wait();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qkv
