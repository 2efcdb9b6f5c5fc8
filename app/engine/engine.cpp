#include "app/engine/engine.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <new>
#include <utility>

#include "app/engine/newest_worker.h"
#include "core/attention/problem_inputs.h"
#include "core/attention/streamed_pass.h"
#include "core/attention/update.h"
#include "core/base/seconds_since.h"
#include "core/base/sole_holder.h"

namespace qkv {
namespace {

// A request that takes about as long as this is computed at once: the frame of 16 ms that shows it is not missed.
constexpr double kInlineSeconds = 6e-3;
// What a small machine does in a second: operations of the two paths, and cells of a head that are digested.
constexpr double kFloat64Rate = 4e9, kFloat32Rate = 6e10, kDigestRate = 2e9;
// Largest matrices of scores and weights that are kept twice, to be edited in turns.
constexpr double kMostSpareBytes = 2e9;
using Outcome = Result<std::shared_ptr<const Computed>>;
using Publish = std::function<void(std::shared_ptr<const Computed>)>;

// What nobody else holds, to be written again.
std::shared_ptr<Computed> sole_owner(std::shared_ptr<const Computed> spare) {
  if (!is_sole_holder(spare)) return nullptr;
  return std::const_pointer_cast<Computed>(std::move(spare));
}

std::shared_ptr<const Computed> digested(const Session& session, Trace trace, ThreadPool& pool) {
  auto computed = std::make_shared<Computed>(Computed{session, std::move(trace), {}});
  computed->digest = digest(computed->trace, &pool);
  return computed;
}

// Makes the matrices that the view shows and the float32 path does not hold, with all threads, so that the frame that
// draws them finds them there.
void make_shown(const Computed& computed, const PassOptions& options) {
  const Trace& trace = computed.trace;
  const ViewSettings& view = computed.session.view;
  if (trace.kernels.empty()) return;
  std::vector<MatrixId> shown;
  if (view.tab == Tab::kHead) {
    const int head = std::clamp(view.head, 0, trace.shapes.heads - 1);
    shown = {{MatrixKind::kScaled, head}, {MatrixKind::kAttn, head}, {MatrixKind::kScores, head}};
    if (trace.problem.options.alibi) shown.push_back({MatrixKind::kAlibi, head});
  } else if (view.tab == Tab::kHeads) {
    for (int head = 0; head < trace.shapes.heads; ++head) shown.push_back({MatrixKind::kAttn, head});
  } else if (view.tab == Tab::kConcat) {
    shown.push_back({MatrixKind::kConcat});
  }
  const bool shows_cells = view.tab == Tab::kHead || view.tab == Tab::kHeads;
  if (shows_cells && computed.digest.hidden > 0) shown.push_back({MatrixKind::kKeep, 0});
  options.pool->run(std::ssize(shown), [&](std::ptrdiff_t n, int) {
    if (is_stopped(options.stop)) return;
    try {
      trace.find(shown[static_cast<std::size_t>(n)]);
    } catch (const std::bad_alloc&) {
      return;  // work of a pool does not throw; they are made where they are drawn
    }
  });
}

// A streamed pass: its heads as far as they are, and the seconds that they took.
struct StreamedPass {
  Trace trace;
  double seconds = 0;
};

// The results hold the same heads: what is computed of them is seen through each.
Outcome refine(const Session& session, StreamedPass& pass, const PassOptions& options, const Publish& publish) {
  const Trace& trace = pass.trace;
  // Heads that are done have no outputs before all is: they are not shown without.
  if (is_refining(trace)) publish(digested(session, trace, *options.pool));
  const int shown = std::clamp(session.view.head, 0, trace.shapes.heads - 1);
  const auto start = std::chrono::steady_clock::now();
  if (is_refining(trace) && sample_streamed(trace, *options.pool, options.stop, shown)) {
    publish(digested(session, trace, *options.pool));
    refine_streamed(trace, *options.pool, options.stop, shown);
  }
  pass.seconds += seconds_since(start);
  if (is_refining(trace)) return Error{ErrorCode::kCancelled, "the computation was stopped"};
  // Not to be stopped any more: with heads that are done nothing would say that something is missing.
  Result<Trace> finished = finish_streamed(trace, {.pool = options.pool});
  if (!finished) return finished.error();
  finished.value().seconds += pass.seconds;
  return digested(session, std::move(finished).value(), *options.pool);
}

// Goes on with `last` where that is of the same problem.
Outcome stream(const Session& session, const Shapes& shapes, std::optional<StreamedPass>& last,
               const PassOptions& options, const Publish& publish) {
  if (!last || last->trace.shapes != shapes || !same_inputs(last->trace.problem, session.problem)) {
    last.reset();
    Result<Trace> begun = begin_streamed(session.problem, shapes, options);
    if (!begun) return begun.error();
    last = StreamedPass{std::move(begun).value()};
  }
  return refine(session, *last, options, publish);
}

Outcome compute(const Session& session, std::shared_ptr<Computed> spare, std::optional<StreamedPass>& streamed,
                const PassOptions& options, const Publish& publish) {
  const Result<Shapes> shapes = check_session(session);
  if (!shapes) return shapes.error();
  if (held_bytes(shapes.value()) > options.most_held_bytes) {
    return stream(session, shapes.value(), streamed, options, publish);
  }
  streamed.reset();
  UpdateReport report;
  Result<Trace> trace =
      spare ? update(std::move(spare->trace), session.problem, options, &report) : forward(session.problem, options);
  if (!trace) return trace.error();
  auto computed = std::make_shared<Computed>(Computed{session, std::move(trace).value(), {}});
  computed->digest = digest(computed->trace, options.pool, spare ? &spare->digest : nullptr, report);
  make_shown(*computed, options);
  return std::shared_ptr<const Computed>(std::move(computed));
}

// To compute `problem` and its digest, from `spare` where that can be edited.
double estimated_seconds(const Problem& problem, const Shapes& shapes, const std::shared_ptr<const Computed>& spare) {
  const double full = estimated_flops(shapes), cells = static_cast<double>(shapes.nq) * static_cast<double>(shapes.nk);
  if (choose_arithmetic(shapes) == Arithmetic::kFloat64) return full / kFloat64Rate;
  UpdateCost cost = {shapes.heads, full};
  if (spare) cost = estimated_cost(spare->trace, problem);
  if (cost.flops >= full) cost.heads = shapes.heads;
  return cost.flops / kFloat32Rate + cells * cost.heads / kDigestRate;
}

}  // namespace

struct Engine::Impl {
  double most_held_bytes;
  ThreadPool pool;
  std::mutex mutex;                                               // of `spare`
  std::shared_ptr<const Computed> spare;                          // the last result that was taken back
  std::optional<StreamedPass> streamed;                           // the last one, the worker's alone
  NewestWorker<Session, std::shared_ptr<const Computed>> worker;  // last: it stops before the rest goes

  Impl(std::function<void()> wake, double most_bytes)
      : most_held_bytes(most_bytes),
        worker(
            [this](const Session& session, const StopFlag* stop, const Publish& publish) {
              const PassOptions options = {.pool = &pool, .stop = stop, .most_held_bytes = most_held_bytes};
              return compute(session, sole_owner(take_spare()), streamed, options, publish);
            },
            std::move(wake)) {}

  std::shared_ptr<const Computed> take_spare() {
    const std::scoped_lock lock(mutex);
    return std::move(spare);
  }
};

Engine::Engine(std::function<void()> wake, double most_held_bytes)
    : impl_(std::make_unique<Impl>(std::move(wake), most_held_bytes)) {}
Engine::~Engine() = default;

void Engine::request(const Session& session) {
  const Result<Shapes> shapes = check_session(session);
  bool small = !shapes;
  if (!small) {
    const std::scoped_lock lock(impl_->mutex);
    small = held_bytes(shapes.value()) <= impl_->most_held_bytes &&
            estimated_seconds(session.problem, shapes.value(), impl_->spare) <= kInlineSeconds;
  }
  impl_->worker.request(session, small);
}

bool Engine::can_stop() const { return impl_->worker.can_stop(); }
void Engine::stop() { impl_->worker.stop(); }
bool Engine::is_stopped() const { return impl_->worker.is_stopped(); }

void Engine::forget() { impl_->worker.forget(); }

void Engine::recycle(std::shared_ptr<const Computed> shown) {
  if (!shown) return;
  const Shapes& shapes = shown->trace.shapes;
  const double bytes = 8.0 * static_cast<double>(shapes.nq) * static_cast<double>(shapes.nk) * shapes.heads;
  if (bytes > kMostSpareBytes) return;
  const std::scoped_lock lock(impl_->mutex);
  impl_->spare = std::move(shown);
}

std::shared_ptr<const Computed> Engine::take_result() { return impl_->worker.take_result().value_or(nullptr); }
std::optional<Error> Engine::take_error() { return impl_->worker.take_error(); }
bool Engine::busy() const { return impl_->worker.busy(); }
void Engine::wait() { impl_->worker.wait(); }

}  // namespace qkv
