#include "core/attention/kernel_pass.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/attention/kernel_cells.h"
#include "core/attention/kernels/gemm.h"
#include "core/attention/position.h"
#include "core/base/sole_holder.h"

namespace qkv {
namespace {

// Rows of a projection that one task computes.
constexpr Index kProjectionRows = 48;
// Below this a thread costs more than it saves: waking one takes 10 to 20 µs.
constexpr double kLeastSharedFlops = 4e6;

// Calls `work` for each task, on the pool where that pays. False when stopped.
bool share_out(Index tasks, double flops, const PassOptions& options, const std::function<void(Index, int)>& work) {
  if (options.pool && flops >= kLeastSharedFlops) return options.pool->run(tasks, work, options.stop);
  for (Index task = 0; task < tasks; ++task) {
    if (is_stopped(options.stop)) return false;
    work(task, 0);
  }
  return true;
}

// out = left·factor + bias. `rows(first, count, worker)` is a block of rows of `left`, until the worker's next call.
template <class Rows>
bool project_blocks(Index count, const Matrix& factor, const std::optional<SharedMatrix>& bias, Matrix& out,
                    const PassOptions& options, const Rows& rows) {
  const double flops = 2.0 * static_cast<double>(count) * static_cast<double>(factor.size());
  bool is_packed = false;
  const PackedFactor packed(view_of(factor), [&](Index parts, const std::function<void(Index)>& pack) {
    is_packed = share_out(parts, flops, options, [&](Index part, int) { pack(part); });
  });
  if (!is_packed) return false;
  const float* added = bias ? bias->get().data() : nullptr;
  const Index tasks = (count + kProjectionRows - 1) / kProjectionRows;
  out.resize(count, factor.cols());
  return share_out(tasks, flops, options, [&](Index task, int worker) {
    const Index first = task * kProjectionRows, of_task = std::min(kProjectionRows, count - first);
    multiply(rows(first, of_task, worker), packed, added,
             {out.data() + first * out.cols(), of_task, out.cols(), out.cols()});
  });
}

// The heads that lie side by side in x·w + bias.
std::optional<std::vector<SharedMatrix>> project_heads(const SharedMatrix& x, const SharedMatrix& w,
                                                       const std::optional<SharedMatrix>& bias, int heads,
                                                       const PassOptions& options) {
  Matrix product;
  if (!project_rows(*x, *w, bias, product, options)) return std::nullopt;
  const Index width = product.cols() / heads;
  std::vector<SharedMatrix> result;
  for (int h = 0; h < heads; ++h) result.emplace_back(Matrix(product.middleCols(h * width, width)));
  return result;
}

// The whole matrix of a kind.
LazyMatrix lazy_cells(const std::shared_ptr<KernelHead>& head, MatrixKind kind) {
  return LazyMatrix([head, kind]() -> std::shared_ptr<const Matrix> {
    const bool held = kind == MatrixKind::kScores && !head->options.causal && !head->options.window;
    if (held) return {head, &head->scores};
    const KernelCells cells(head, kind);
    auto whole = std::make_shared<Matrix>(cells.rows(), cells.cols());
    cells.read({0, 0, cells.rows(), cells.cols()}, *whole);
    return whole;
  });
}

void resize_buffers(KernelHead& head, const Shapes& shapes) {
  head.scores.resize(shapes.nq, shapes.nk);
  head.weights.resize(shapes.nq, shapes.nk);
  head.out.resize(shapes.nq, shapes.d_v);
  head.rows.resize(static_cast<std::size_t>(shapes.nq));
}

int threads_of(const PassOptions& options) { return options.pool ? options.pool->threads() : 1; }

// One for each thread.
std::vector<KernelScratch> scratch_of(const PassOptions& options) {
  return std::vector<KernelScratch>(static_cast<std::size_t>(threads_of(options)));
}

}  // namespace

double denominator_unit(const RowSoftmax& row) {
  return std::exp(static_cast<double>(row.base) - static_cast<double>(row.max) +
                  static_cast<double>(row.exponent) * std::numbers::ln2);
}

RowStats row_stats(const RowSoftmax& row, const std::optional<float>& sink) {
  return row_stats(row, denominator_unit(row), sink);
}

RowStats row_stats(const RowSoftmax& row, double unit, const std::optional<float>& sink) {
  if (row.visible == 0) return {};
  RowStats stats = {row.max, row.sum * unit, row.visible, 0};
  if (sink) stats.sink = std::exp(static_cast<double>(*sink) - stats.max) / stats.denominator;
  return stats;
}

bool project_rows(const Matrix& left, const Matrix& factor, const std::optional<SharedMatrix>& bias, Matrix& out,
                  const PassOptions& options) {
  return project_blocks(left.rows(), factor, bias, out, options, [&](Index first, Index count, int) {
    return FloatView{left.data() + first * left.cols(), count, left.cols(), left.cols()};
  });
}

HeadInput head_input(const KernelHead& head) {
  return head_input(*head.q, *head.kv, head.options, head.shapes, head.head);
}

HeadOutput head_output(KernelHead& head) {
  return {block_of(head.scores), block_of(head.weights), block_of(head.out), head.rows, false};
}

bool project_all(Trace& trace, const PassOptions& options) {
  if (const auto* direct = std::get_if<DirectSource>(&trace.problem.source)) {
    trace.q = direct->q;
    trace.k = direct->k;
    trace.v = direct->v;
    return true;
  }
  const auto& source = std::get<ProjectedSource>(trace.problem.source);
  auto q = project_heads(source.x, source.wq, source.bq, trace.shapes.heads, options);
  auto k = q ? project_heads(source.x, source.wk, source.bk, trace.shapes.kv_heads, options) : std::nullopt;
  auto v = k ? project_heads(source.x, source.wv, source.bv, trace.shapes.kv_heads, options) : std::nullopt;
  if (!v) return false;
  trace.q = std::move(*q);
  trace.k = std::move(*k);
  trace.v = std::move(*v);
  return true;
}

bool run_rows(Trace& trace, const std::vector<RowTask>& rows, const PassOptions& options) {
  std::vector<RowTask> tasks;
  double flops = 0;
  for (const RowTask& part : rows) {
    KernelHead& kernel = *trace.kernels[static_cast<std::size_t>(part.head)];
    const Index block = preferred_row_block(head_input(kernel), head_output(kernel));
    for (Index row = 0; row < part.count; row += block) {
      tasks.push_back({part.head, part.first + row, std::min(block, part.count - row)});
    }
    flops += estimated_flops(trace.shapes) / trace.shapes.heads * static_cast<double>(part.count) /
             static_cast<double>(trace.shapes.nq);
  }
  std::vector<KernelScratch> scratch = scratch_of(options);
  return share_out(static_cast<Index>(tasks.size()), flops, options, [&](Index index, int worker) {
    const RowTask& task = tasks[static_cast<std::size_t>(index)];
    KernelHead& kernel = *trace.kernels[static_cast<std::size_t>(task.head)];
    attend_rows(head_input(kernel), task.first, task.count, head_output(kernel),
                scratch[static_cast<std::size_t>(worker)]);
  });
}

bool project_output(Trace& trace, const PassOptions& options) {
  if (!trace.problem.wo) return true;
  if (!trace.out) trace.out.emplace();
  // The rows of all heads are joined block by block: nobody may ever look at the whole of concat.
  const Index width = trace.shapes.d_v;
  std::vector<Matrix> joined(static_cast<std::size_t>(threads_of(options)));
  const auto rows = [&](Index first, Index count, int worker) {
    Matrix& block = joined[static_cast<std::size_t>(worker)];
    block.resize(count, trace.shapes.heads * width);
    for (std::size_t h = 0; h < trace.heads.size(); ++h) {
      block.middleCols(static_cast<Index>(h) * width, width) = trace.heads[h].out->middleRows(first, count);
    }
    return view_of(block);
  };
  return project_blocks(trace.shapes.nq, **trace.problem.wo, trace.problem.bo, *trace.out, options, rows);
}

void present_cells(Trace& trace, int head) {
  const auto h = static_cast<std::size_t>(head);
  const std::shared_ptr<KernelHead>& kernel = trace.kernels[h];
  HeadTrace& shown = trace.heads[h];
  shown.scores = lazy_cells(kernel, MatrixKind::kScores);
  shown.scaled = lazy_cells(kernel, MatrixKind::kScaled);
  shown.attn = lazy_cells(kernel, MatrixKind::kAttn);
  shown.out = LazyMatrix([kernel] { return std::shared_ptr<const Matrix>(kernel, &kernel->out); });
}

void present_rows(Trace& trace, int head, Index first, Index count) {
  const auto h = static_cast<std::size_t>(head);
  const KernelHead& kernel = *trace.kernels[h];
  HeadTrace& shown = trace.heads[h];
  const std::optional<float> sink = head_input(kernel).sink;
  std::transform(kernel.rows.begin() + first, kernel.rows.begin() + first + count, shown.rows.begin() + first,
                 [&](const RowSoftmax& row) { return row_stats(row, sink); });
}

std::optional<std::vector<SharedMatrix>> rotated_heads(const std::vector<SharedMatrix>& heads,
                                                       const std::optional<Rope>& rope, const PassOptions& options) {
  if (!rope || heads.empty()) return heads;
  constexpr Index kRows = 32;
  const Index n = heads.front()->rows(), d = heads.front()->cols();
  const RowRotation rotation(*rope, d);
  std::vector<Matrix> turned;
  for (std::size_t h = 0; h < heads.size(); ++h) turned.emplace_back(n, d);
  const auto turn_rows = [&](Index task, int) {
    std::vector<RowRotation::Angle> angles;
    Eigen::RowVectorXd line(d);
    for (Index row = task * kRows; row < std::min((task + 1) * kRows, n); ++row) {
      rotation.find_angles(row, angles);
      for (std::size_t h = 0; h < heads.size(); ++h) {
        line = heads[h]->row(row).cast<double>();
        rotation.turn({line.data(), static_cast<std::size_t>(d)}, angles);
        turned[h].row(row) = line.cast<float>();
      }
    }
  };
  // A sine and a cosine take as long as about a hundred sums.
  const double flops = static_cast<double>(n * d) * (100 + 4 * static_cast<double>(heads.size()));
  if (!share_out((n + kRows - 1) / kRows, flops, options, turn_rows)) return std::nullopt;
  return std::vector<SharedMatrix>(std::make_move_iterator(turned.begin()), std::make_move_iterator(turned.end()));
}

namespace {

void pack_group(const Matrix& k, const Matrix& v, std::shared_ptr<PackedKeyValues>& packed) {
  if (packed && is_sole_holder(packed)) {
    packed->assign(view_of(k), view_of(v));
  } else {
    packed = std::make_shared<PackedKeyValues>(view_of(k), view_of(v));
  }
}

// Packs and computes a group of heads after the other; false when stopped.
bool run_groups(Trace& trace, PackedHeads& packed, const PassOptions& options) {
  const Shapes& shapes = trace.shapes;
  packed.resize(static_cast<std::size_t>(shapes.kv_heads));
  std::vector<KernelScratch> scratch = scratch_of(options);
  const auto keys = rotated_heads(trace.k, trace.problem.options.rope, options);
  return keys && share_out(shapes.kv_heads, estimated_flops(shapes), options, [&](Index group, int worker) {
           const auto kv_head = static_cast<std::size_t>(group);
           pack_group(*(*keys)[kv_head], *trace.v[kv_head], packed[kv_head]);
           for (int head = 0; head < shapes.heads; ++head) {
             if (kv_head_of(shapes, head) != group) continue;
             KernelHead& kernel = *trace.kernels[static_cast<std::size_t>(head)];
             kernel.kv = packed[kv_head];
             attend_rows(head_input(kernel), 0, shapes.nq, head_output(kernel),
                         scratch[static_cast<std::size_t>(worker)]);
           }
         });
}

}  // namespace

bool pack_keys_and_values(const Trace& trace, const PassOptions& options, PackedHeads& packed) {
  const Shapes& shapes = trace.shapes;
  packed.resize(static_cast<std::size_t>(shapes.kv_heads));
  const double moved = static_cast<double>(shapes.nk * (shapes.d_k + shapes.d_v) * shapes.kv_heads);
  const auto keys = rotated_heads(trace.k, trace.problem.options.rope, options);
  return keys && share_out(shapes.kv_heads, 4 * moved, options, [&](Index kv_head, int) {
           const auto h = static_cast<std::size_t>(kv_head);
           pack_group(*(*keys)[h], *trace.v[h], packed[h]);
         });
}

namespace {

// Takes the packed keys and values, one of each group, from heads that nobody else holds.
PackedHeads packed_of(const std::vector<std::shared_ptr<KernelHead>>& kernels) {
  PackedHeads packed;
  for (const std::shared_ptr<KernelHead>& kernel : kernels) {
    if (!kernel || !is_sole_holder(kernel) || !kernel->kv) continue;
    std::shared_ptr<PackedKeyValues> kv = std::move(kernel->kv);
    if (packed.empty() || packed.back() != kv) packed.push_back(std::move(kv));
  }
  return packed;
}

// Packs all, then computes blocks of rows of any head; false when stopped.
bool run_blocks(Trace& trace, PackedHeads& packed, const PassOptions& options) {
  if (!pack_keys_and_values(trace, options, packed)) return false;
  std::vector<RowTask> rows;
  for (int head = 0; head < trace.shapes.heads; ++head) {
    const auto kv_head = static_cast<std::size_t>(kv_head_of(trace.shapes, head));
    trace.kernels[static_cast<std::size_t>(head)]->kv = packed[kv_head];
    rows.push_back({head, 0, trace.shapes.nq});
  }
  return run_rows(trace, rows, options);
}

}  // namespace

bool kernel_pass(Trace& trace, const PassOptions& options, std::vector<std::shared_ptr<KernelHead>> buffers) {
  if (!project_all(trace, options)) return false;
  const Shapes& shapes = trace.shapes;
  const AttentionOptions& attention = trace.problem.options;
  set_lazy_masks(trace);
  trace.heads.resize(static_cast<std::size_t>(shapes.heads));
  trace.kernels = std::move(buffers);
  trace.kernels.resize(trace.heads.size());

  PackedHeads packed = packed_of(trace.kernels);
  const auto queries = rotated_heads(trace.q, attention.rope, options);
  if (!queries) return false;
  for (int head = 0; head < shapes.heads; ++head) {
    const auto h = static_cast<std::size_t>(head);
    std::shared_ptr<KernelHead>& kernel = trace.kernels[h];
    if (!kernel || !is_sole_holder(kernel)) kernel = std::make_shared<KernelHead>();
    kernel->q = (*queries)[h];
    kernel->options = attention;
    kernel->shapes = shapes;
    kernel->head = head;
    kernel->sums.reset();
    resize_buffers(*kernel, shapes);
  }
  const double flops = estimated_flops(shapes) / shapes.kv_heads;
  const bool by_groups = computes_whole_groups(shapes.kv_heads, flops, threads_of(options));
  if (!(by_groups ? run_groups(trace, packed, options) : run_blocks(trace, packed, options))) return false;
  for (HeadTrace& head : trace.heads) head.rows.resize(static_cast<std::size_t>(shapes.nq));
  // An exponential and a division for each row.
  const double statistics = static_cast<double>(shapes.nq) * shapes.heads * 100;
  const auto present = [&](Index head, int) {
    present_cells(trace, static_cast<int>(head));
    present_rows(trace, static_cast<int>(head), 0, shapes.nq);
  };
  if (!share_out(shapes.heads, statistics, options, present)) return false;
  set_lazy_concat(trace);
  return project_output(trace, options);
}

}  // namespace qkv
