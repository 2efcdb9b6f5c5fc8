// How far a long reading is, and whether it shall go on: shared by the thread that reads and the one that waits.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/result.h"

namespace qkv {

// Bytes between two looks at it: a thousandth of a second of copying, a hundredth of unpacking.
inline constexpr std::uint64_t kReadStep = std::uint64_t{1} << 20;

class ReadProgress {
 public:
  // Whoever reads: so many bytes more are to come, and were read.
  void expect(std::uint64_t bytes) { total_.fetch_add(bytes, std::memory_order_relaxed); }
  void add(std::uint64_t bytes) { done_.fetch_add(bytes, std::memory_order_relaxed); }

  // Whoever waits. The reading then ends soon with kCancelled.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool is_cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  std::uint64_t done() const { return done_.load(std::memory_order_relaxed); }
  std::uint64_t total() const { return total_.load(std::memory_order_relaxed); }  // 0 until it is known

 private:
  std::atomic<std::uint64_t> done_ = 0, total_ = 0;
  std::atomic<bool> cancelled_ = false;
};

// Of readers, whose caller may not care (`progress` is nullptr): `bytes` were read. kCancelled where it shall stop.
inline Status count_read(ReadProgress* progress, std::uint64_t bytes) {
  if (progress == nullptr) return Done{};
  progress->add(bytes);
  if (progress->is_cancelled()) return Error{ErrorCode::kCancelled, "reading was cancelled"};
  return Done{};
}

}  // namespace qkv
