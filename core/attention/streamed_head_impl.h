// What a StreamedHead is made of; for the files that are its parts.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "core/attention/block_row.h"
#include "core/attention/overview.h"
#include "core/attention/streamed_cells.h"
#include "core/attention/streamed_head.h"

namespace qkv {

struct StreamedHead::Impl {
  Impl(SharedMatrix q, std::shared_ptr<const PackedKeyValues> kv, AttentionOptions options, const Shapes& shapes,
       int head, bool with_out, Index overview_blocks);

  // Rows [first, first + count) of the head, a whole number of overview rows but at the end.
  struct Task {
    Index first = 0, count = 0;
    std::int64_t pairs = 0;  // visible ones and one more for each row: its share of the work
    std::atomic<bool> done = false;
  };
  // Memory that one thread of the pass works in.
  struct Worker {
    Worker(Index rows, Index blocks);
    KernelScratch scratch;
    BlockPlanes planes;
    std::vector<RowSoftmax> rows;
    std::array<BlockRow, kCellKinds.size()> blocks;
    std::vector<Index> counts, row_counts;
  };

  std::vector<Worker> workers(int threads, Index rows) const;
  bool sample(ThreadPool& pool, std::vector<Worker>& workers, const StopFlag* stop);
  bool refine(ThreadPool& pool, std::vector<Worker>& workers, const StopFlag* stop);
  void sample_group(Index group, Worker& worker);
  void run_task(Task& task, Worker& worker);
  // Overview row from rows [first, first + count) of the worker's planes, which are those of `part`.
  void sum_up(Worker& worker, Index first, Index count, const Rect& part);
  // A sampled row stands for its whole block: counts of the block, values from beside where the sample sees none.
  void stretch(Worker& worker, const Rect& block) const;
  void publish(Index overview_row, const Worker& worker);

  bool task_done(Index row) const {
    return tasks[static_cast<std::size_t>(row / task_rows)].done.load(std::memory_order_acquire);
  }
  // False where the overviews do not have these blocks.
  bool read_overview(CellKind kind, const Rect& rect, int level, Reduction how, MatrixRef out) const;

  StreamedCells cells;
  Matrix out;  // [Nq, d_v], or empty
  bool with_out;
  int level;
  Index side;        // 2^level
  Index group_rows;  // sampled rows that are worked out at once
  Index task_rows;
  Index sample_offset;  // of the sampled row within its block
  std::vector<Task> tasks;
  std::vector<std::atomic<bool>> groups_done;
  std::int64_t all_pairs = 0, sample_pairs = 0;
  std::atomic<std::int64_t> pairs_done = 0;
  std::atomic<std::uint64_t> generation = 0;
  std::atomic<bool> sampled = false;

  mutable std::mutex mutex;         // of what follows
  std::vector<Overview> overviews;  // by CellKind
  std::array<CellExtent, kCellKinds.size()> extents;
};

}  // namespace qkv
