// The softmax of every query row, each set once, readable while others are still being worked out.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/attention/kernels/head_kernel.h"

namespace qkv {

// Safe from many threads. What is set never changes.
class RowTable {
 public:
  explicit RowTable(Index rows)
      : rows_(static_cast<std::size_t>(rows)),
        ready_(std::make_unique<std::atomic<bool>[]>(static_cast<std::size_t>(rows))) {}

  bool ready(Index row) const { return ready_[static_cast<std::size_t>(row)].load(std::memory_order_acquire); }
  // Sets rows first, first + step, …; those that are set already stay.
  void set(Index first, std::span<const RowSoftmax> rows, Index step = 1) {
    const std::scoped_lock lock(mutex_);
    for (const RowSoftmax& row : rows) {
      const auto at = static_cast<std::size_t>(first);
      first += step;
      if (ready_[at].load(std::memory_order_relaxed)) continue;
      rows_[at] = row;
      ready_[at].store(true, std::memory_order_release);
    }
  }
  // Rows that are ready.
  std::span<const RowSoftmax> rows(Index first, Index count) const {
    return {rows_.data() + first, static_cast<std::size_t>(count)};
  }
  std::size_t bytes() const { return rows_.size() * (sizeof(RowSoftmax) + sizeof(std::atomic<bool>)); }

 private:
  std::mutex mutex_;
  std::vector<RowSoftmax> rows_;
  std::unique_ptr<std::atomic<bool>[]> ready_;
};

}  // namespace qkv
