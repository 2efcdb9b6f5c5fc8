#include "core/attention/streamed_pass.h"

#include <chrono>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "core/attention/kernel_pass.h"
#include "core/attention/streamed_head.h"
#include "core/attention/visible_keys.h"
#include "core/base/seconds_since.h"

namespace qkv {
namespace {

Error stopped() { return {ErrorCode::kCancelled, "the computation was stopped"}; }

Error out_of_memory(const Shapes& shapes) {
  return unsupported("not enough memory for " + std::to_string(shapes.heads) + " heads of " +
                     std::to_string(shapes.nq) + " queries and " + std::to_string(shapes.nk) +
                     " keys: use fewer tokens or heads");
}

// Calls work(head) for every head, beginning with `first`. False as soon as one does.
template <class Work>
bool for_each_head(const Trace& trace, int first, const Work& work) {
  const int heads = trace.shapes.heads;
  for (int n = 0; n < heads; ++n) {
    if (!work(*trace.streams[static_cast<std::size_t>((first + n) % heads)])) return false;
  }
  return true;
}

Result<Trace> begin(const Problem& problem, const Shapes& shapes, const PassOptions& options) {
  if (is_weights_only(problem.source)) return bad_input("given weights are held already: there is nothing to stream");
  const auto start = std::chrono::steady_clock::now();
  Trace trace;
  trace.problem = problem;
  trace.shapes = shapes;
  trace.arithmetic = Arithmetic::kFloat32;
  if (!project_all(trace, options)) return stopped();
  PackedHeads packed;
  if (!pack_keys_and_values(trace, options, packed)) return stopped();
  const VisibleKeys visible(kernel_mask(trace.problem.options, shapes), shapes.nq, shapes.nk);
  std::vector<RowStats> rows(static_cast<std::size_t>(shapes.nq));
  for (Index row = 0; row < shapes.nq; ++row) {
    rows[static_cast<std::size_t>(row)].visible = visible.count(row, 0, shapes.nk);
  }
  trace.heads.resize(static_cast<std::size_t>(shapes.heads));
  for (int head = 0; head < shapes.heads; ++head) {
    const auto h = static_cast<std::size_t>(head);
    const auto kv = static_cast<std::size_t>(kv_head_of(shapes, head));
    if (is_stopped(options.stop)) return stopped();
    trace.heads[h].rows = rows;
    trace.streams.push_back(
        std::make_shared<StreamedHead>(trace.q[h], packed[kv], trace.problem.options, shapes, head, true));
  }
  trace.seconds = seconds_since(start);
  return trace;
}

Result<Trace> finish(Trace trace, const PassOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const Shapes& shapes = trace.shapes;
  for (int head = 0; head < shapes.heads; ++head) {
    const auto h = static_cast<std::size_t>(head);
    const StreamedHead& stream = *trace.streams[h];
    HeadTrace& shown = trace.heads[h];
    shown.out = LazyMatrix([held = trace.streams[h]] { return std::shared_ptr<const Matrix>(held, held->out()); });
    const auto& sinks = trace.problem.options.sink;
    const std::optional<float> sink = sinks.empty() ? std::nullopt : std::optional(sinks[h]);
    for (Index row = 0; row < shapes.nq; ++row) {
      shown.rows[static_cast<std::size_t>(row)] = row_stats(stream.row(row), sink);
    }
  }
  set_lazy_concat(trace);
  if (!project_output(trace, options)) return stopped();
  trace.seconds += seconds_since(start);
  return trace;
}

}  // namespace

Result<Trace> begin_streamed(const Problem& problem, const Shapes& shapes, const PassOptions& options) {
  try {
    return begin(problem, shapes, options);
  } catch (const std::bad_alloc&) {
    return out_of_memory(shapes);
  }
}

bool sample_streamed(const Trace& trace, ThreadPool& pool, const StopFlag* stop, int first_head) {
  return for_each_head(trace, first_head, [&](StreamedHead& head) { return head.sample(pool, stop); });
}

bool refine_streamed(const Trace& trace, ThreadPool& pool, const StopFlag* stop, int first_head) {
  return for_each_head(trace, first_head, [&](StreamedHead& head) { return head.compute(pool, stop); });
}

double streamed_progress(const Trace& trace) {
  double sum = 0;
  for (const auto& head : trace.streams) sum += head->progress();
  return sum / static_cast<double>(trace.streams.size());
}

Result<Trace> finish_streamed(Trace trace, const PassOptions& options) {
  const Shapes shapes = trace.shapes;
  try {
    return finish(std::move(trace), options);
  } catch (const std::bad_alloc&) {
    return out_of_memory(shapes);
  }
}

Result<Trace> streamed_pass(const Problem& problem, const Shapes& shapes, const PassOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Result<Trace> trace = begin_streamed(problem, shapes, options);
  if (!trace.ok()) return trace;
  std::optional<ThreadPool> own;
  ThreadPool& pool = options.pool ? *options.pool : own.emplace(1);
  if (!refine_streamed(trace.value(), pool, options.stop)) return stopped();
  trace = finish_streamed(std::move(trace).value(), options);
  if (trace.ok()) trace.value().seconds = seconds_since(start);
  return trace;
}

}  // namespace qkv
