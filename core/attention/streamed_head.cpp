#include "core/attention/streamed_head.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "core/attention/kernel_input.h"
#include "core/attention/streamed_head_impl.h"

namespace qkv {
namespace {

std::size_t index_of(CellKind kind) { return static_cast<std::size_t>(kind); }

// 0 … n − 1 so that any beginning of it is spread evenly: the numbers with their bits read backwards.
std::vector<Index> spread_order(Index n) {
  const auto bits = static_cast<int>(std::bit_width(static_cast<std::size_t>(std::max<Index>(n, 1) - 1)));
  std::vector<Index> order;
  for (Index i = 0; i < Index{1} << bits; ++i) {
    Index reversed = 0;
    for (int bit = 0; bit < bits; ++bit) reversed |= ((i >> bit) & 1) << (bits - 1 - bit);
    if (reversed < n) order.push_back(reversed);
  }
  return order;
}

CellExtent merge(const CellExtent& a, const CellExtent& b) {
  if (a.low > a.high) return b;
  if (b.low > b.high) return a;
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

std::int64_t work_of(const VisibleKeys& visible, Index row) { return visible.count(row, 0, visible.cols()) + 1; }

}  // namespace

StreamedHead::Impl::Worker::Worker(Index row_count, Index block_count)
    : planes(row_count, block_count),
      rows(static_cast<std::size_t>(row_count)),
      blocks{BlockRow(kCellKinds[0], block_count), BlockRow(kCellKinds[1], block_count),
             BlockRow(kCellKinds[2], block_count)},
      counts(static_cast<std::size_t>(block_count)),
      row_counts(counts.size()) {}

StreamedHead::Impl::Impl(SharedMatrix q, std::shared_ptr<const PackedKeyValues> kv, AttentionOptions options,
                         const Shapes& shapes, int head, bool want_out, Index overview_blocks)
    : cells(std::move(q), std::move(kv), std::move(options), shapes, head),
      with_out(want_out),
      level(qkv::overview_level(shapes.nq, shapes.nk, overview_blocks)),
      side(Index{1} << level) {
  if (with_out) out.resize(shapes.nq, shapes.d_v);
  for ([[maybe_unused]] const CellKind kind : kCellKinds) overviews.emplace_back(shapes.nq, shapes.nk, level);
  HeadOutput asked;
  asked.blocks.width = side;
  asked.out = block_of(out);
  group_rows = preferred_row_block(cells.input(), asked);
  task_rows = (group_rows + side - 1) / side * side;
  const Index block_rows = overviews[0].block_rows();
  // In the middle of a block; of all blocks, the last may be the shortest.
  sample_offset = std::min(side / 2, shapes.nq - (block_rows - 1) * side - 1);

  tasks = std::vector<Task>(static_cast<std::size_t>((shapes.nq + task_rows - 1) / task_rows));
  for (Index row = 0; row < shapes.nq; ++row) {
    Task& task = tasks[static_cast<std::size_t>(row / task_rows)];
    if (task.count == 0) task.first = row;
    ++task.count;
    task.pairs += work_of(cells.visible(), row);
    if (side > 1 && row % side == sample_offset) sample_pairs += work_of(cells.visible(), row);
  }
  for (const Task& task : tasks) all_pairs += task.pairs;
  all_pairs += sample_pairs;
  sampled = side == 1;
  groups_done = std::vector<std::atomic<bool>>(static_cast<std::size_t>((block_rows + group_rows - 1) / group_rows));
}

void StreamedHead::Impl::sum_up(Worker& worker, Index first, Index count, const Rect& part) {
  cells.visible().count_blocks(part, side, worker.counts);
  for (const CellKind kind : kCellKinds) {
    BlockRow& blocks = worker.blocks[index_of(kind)];
    blocks.clear();
    std::vector<Index>& counts = worker.row_counts;
    counts = worker.counts;
    for (Index r = first; r < first + count; ++r) {
      const RowSoftmax& row = worker.rows[static_cast<std::size_t>(r)];
      if (row.visible == 0) continue;
      if (kind != CellKind::kWeights) {
        blocks.add(worker.planes.row(kind, r), 1);
      } else if (!std::isnan(row.sum)) {
        blocks.add(worker.planes.row(kind, r), normalizer(row));
      } else {
        const Rect all = {part.row + r - first, 0, 1, part.cols};
        for (std::size_t b = 0; b < counts.size(); ++b) {
          const Index left = static_cast<Index>(b) * side;
          counts[b] -= cells.visible().count(all.row, left, std::min(left + side, all.cols));
        }
      }
    }
    blocks.finish(cells, part, side, counts);
  }
}

void StreamedHead::Impl::stretch(Worker& worker, const Rect& block) const {
  cells.visible().count_blocks(block, side, worker.counts);
  for (BlockRow& blocks : worker.blocks) {
    // First from the left, then, for those before the first that the sample saw, from the right.
    const auto fill = [&](std::size_t b, std::size_t from) {
      if (blocks.count[b] > 0 || blocks.count[from] == 0 || worker.counts[b] == 0) return;
      blocks.mean[b] = blocks.mean[from];
      blocks.max[b] = blocks.max[from];
      blocks.count[b] = 1;
    };
    const std::size_t n = blocks.count.size();
    for (std::size_t b = 1; b < n; ++b) fill(b, b - 1);
    for (std::size_t b = n - 1; b-- > 0;) fill(b, b + 1);
    for (std::size_t b = 0; b < n; ++b) {
      if (blocks.count[b] > 0) blocks.count[b] = static_cast<float>(worker.counts[b]);
    }
  }
}

void StreamedHead::Impl::publish(Index overview_row, const Worker& worker) {
  const std::scoped_lock lock(mutex);
  for (std::size_t n = 0; n < overviews.size(); ++n) {
    const BlockRow& blocks = worker.blocks[n];
    overviews[n].set_row(overview_row, blocks.mean, blocks.max, blocks.count);
    extents[n] = merge(extents[n], {blocks.lowest, blocks.highest});
  }
}

void StreamedHead::Impl::sample_group(Index group, Worker& worker) {
  const Index first = group * group_rows, count = std::min(group_rows, overviews[0].block_rows() - first);
  const Shapes& shapes = cells.shapes();
  const Index first_row = first * side + sample_offset;
  const std::span<RowSoftmax> rows(worker.rows.data(), static_cast<std::size_t>(count));
  HeadOutput output;
  output.rows = rows;
  output.blocks = worker.planes.output(side);
  attend_rows(sample_rows(cells.input(), first_row, count, side), 0, count, output, worker.scratch);
  cells.rows().set(first_row, rows, side);
  std::int64_t pairs = 0;
  for (Index n = 0; n < count; ++n) {
    const Index row = first_row + n * side, top = (first + n) * side;
    pairs += work_of(cells.visible(), row);
    sum_up(worker, n, 1, {row, 0, 1, shapes.nk});
    stretch(worker, {top, 0, std::min(side, shapes.nq - top), shapes.nk});
    publish(first + n, worker);
  }
  pairs_done += pairs;
  ++generation;
}

void StreamedHead::Impl::run_task(Task& task, Worker& worker) {
  const std::span<RowSoftmax> rows(worker.rows.data(), static_cast<std::size_t>(task.count));
  HeadOutput output;
  output.rows = rows;
  output.blocks = worker.planes.output(side);
  if (with_out) output.out = {out.row(task.first).data(), task.count, out.cols(), out.cols()};
  attend_rows(sample_rows(cells.input(), task.first, task.count), 0, task.count, output, worker.scratch);
  cells.rows().set(task.first, rows);
  for (Index n = 0; n < task.count; n += side) {
    const Index count = std::min(side, task.count - n);
    sum_up(worker, n, count, {task.first + n, 0, count, cells.shapes().nk});
    publish((task.first + n) / side, worker);
  }
  task.done.store(true, std::memory_order_release);
  pairs_done += task.pairs;
  ++generation;
}

std::vector<StreamedHead::Impl::Worker> StreamedHead::Impl::workers(int threads, Index rows) const {
  std::vector<Worker> all;
  for (int n = 0; n < threads; ++n) all.emplace_back(rows, overviews[0].block_cols());
  return all;
}

bool StreamedHead::Impl::sample(ThreadPool& pool, std::vector<Worker>& workers, const StopFlag* stop) {
  std::vector<Index> left;
  for (const Index group : spread_order(static_cast<Index>(groups_done.size()))) {
    if (!groups_done[static_cast<std::size_t>(group)]) left.push_back(group);
  }
  const auto work = [&](Index n, int worker) {
    const Index group = left[static_cast<std::size_t>(n)];
    sample_group(group, workers[static_cast<std::size_t>(worker)]);
    groups_done[static_cast<std::size_t>(group)] = true;
  };
  sampled = pool.run(static_cast<Index>(left.size()), work, stop);
  if (sampled) ++generation;
  return sampled;
}

bool StreamedHead::Impl::refine(ThreadPool& pool, std::vector<Worker>& workers, const StopFlag* stop) {
  std::vector<Task*> left;
  for (const Index n : spread_order(static_cast<Index>(tasks.size()))) {
    Task& task = tasks[static_cast<std::size_t>(n)];
    if (!task.done) left.push_back(&task);
  }
  const auto work = [&](Index n, int worker) {
    run_task(*left[static_cast<std::size_t>(n)], workers[static_cast<std::size_t>(worker)]);
  };
  return pool.run(static_cast<Index>(left.size()), work, stop);
}

bool StreamedHead::Impl::read_overview(CellKind kind, const Rect& rect, int wanted, Reduction how,
                                       MatrixRef result) const {
  const std::scoped_lock lock(mutex);
  const Overview& overview = overviews[index_of(kind)];
  if (!overview.has(rect, wanted)) return false;
  overview.reduce(rect, wanted, how, result);
  return true;
}

StreamedHead::StreamedHead(SharedMatrix q, std::shared_ptr<const PackedKeyValues> kv, AttentionOptions options,
                           const Shapes& shapes, int head, bool with_out, Index overview_blocks)
    : impl_(std::make_unique<Impl>(std::move(q), std::move(kv), std::move(options), shapes, head, with_out,
                                   overview_blocks)) {}

StreamedHead::~StreamedHead() = default;

bool StreamedHead::sample(ThreadPool& pool, const StopFlag* stop) {
  if (impl_->sampled) return true;
  std::vector<Impl::Worker> workers = impl_->workers(pool.threads(), impl_->group_rows);
  return impl_->sample(pool, workers, stop);
}

bool StreamedHead::compute(ThreadPool& pool, const StopFlag* stop) {
  if (!sample(pool, stop)) return false;
  std::vector<Impl::Worker> workers = impl_->workers(pool.threads(), impl_->task_rows);
  return impl_->refine(pool, workers, stop);
}

double StreamedHead::progress() const {
  return static_cast<double>(impl_->pairs_done.load()) / static_cast<double>(impl_->all_pairs);
}

std::uint64_t StreamedHead::generation() const { return impl_->generation; }

bool StreamedHead::has_overview() const {
  // Without a sample the picture is whole when all rows are.
  return impl_->side > 1 ? impl_->sampled.load() : impl_->pairs_done == impl_->all_pairs;
}

const Shapes& StreamedHead::shapes() const { return impl_->cells.shapes(); }

int StreamedHead::overview_level() const { return impl_->level; }

CellExtent StreamedHead::extent(MatrixKind kind) const {
  const CellKind cell = kind == MatrixKind::kScores   ? CellKind::kScores
                        : kind == MatrixKind::kScaled ? CellKind::kScaled
                                                      : CellKind::kWeights;
  const std::scoped_lock lock(impl_->mutex);
  return impl_->extents[index_of(cell)];
}

RowSoftmax StreamedHead::row(Index row) const {
  impl_->cells.complete_rows(row, 1);
  return impl_->cells.rows().rows(row, 1)[0];
}

const Matrix* StreamedHead::out() const { return impl_->with_out ? &impl_->out : nullptr; }

std::size_t StreamedHead::bytes() const {
  std::size_t sum = impl_->cells.bytes() + static_cast<std::size_t>(impl_->out.size()) * sizeof(float);
  for (const Overview& overview : impl_->overviews) sum += overview.bytes();
  return sum + impl_->tasks.size() * sizeof(Impl::Task) + impl_->groups_done.size();
}

std::size_t StreamedHead::bytes_per_worker() const {
  const Index blocks = impl_->overviews[0].block_cols();
  // A BlockRow has three arrays of float, one of double, one more of float, and may read one block again.
  const std::size_t block_row = static_cast<std::size_t>(blocks) * 24 + static_cast<std::size_t>(impl_->side) * 4 * 128;
  return BlockPlanes::bytes(impl_->task_rows, blocks) + 3 * block_row + static_cast<std::size_t>(blocks) * 16;
}

}  // namespace qkv
