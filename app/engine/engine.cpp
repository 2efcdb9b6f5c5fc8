#include "app/engine/engine.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <new>
#include <utility>

#include "app/engine/newest_worker.h"
#include "core/attention/streamed_pass.h"
#include "core/attention/update.h"
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

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The results hold the same heads: what is computed of them is seen through each. `spent`: seconds that were, before
// it was stopped, and then are.
Outcome refine(const Session& session, const Trace& trace, double& spent, const PassOptions& options,
               const Publish& publish) {
  publish(digested(session, trace, *options.pool));
  const int shown = std::clamp(session.view.head, 0, trace.shapes.heads - 1);
  const auto start = std::chrono::steady_clock::now();
  const auto compute_heads = [&] {
    if (!sample_streamed(trace, *options.pool, options.stop, shown)) return false;
    publish(digested(session, trace, *options.pool));
    return refine_streamed(trace, *options.pool, options.stop, shown);
  };
  const bool complete = compute_heads();
  spent += seconds_since(start);
  if (!complete) return Error{ErrorCode::kCancelled, "the computation was stopped"};
  Result<Trace> finished = finish_streamed(trace, options);
  if (!finished) return finished.error();
  finished.value().seconds += spent;
  return digested(session, std::move(finished).value(), *options.pool);
}

// A session, or a streamed pass of it that was stopped.
struct Request {
  Session session;
  std::optional<Trace> stopped;
};

Outcome compute(const Request& request, std::shared_ptr<Computed> spare, double& spent, const PassOptions& options,
                const Publish& publish) {
  const Session& session = request.session;
  if (request.stopped) return refine(session, *request.stopped, spent, options, publish);
  const Result<Shapes> shapes = check_session(session);
  if (!shapes) return shapes.error();
  if (held_bytes(shapes.value()) > options.most_held_bytes) {
    const Result<Trace> begun = begin_streamed(session.problem, shapes.value(), options);
    spent = 0;
    return begun ? refine(session, begun.value(), spent, options, publish) : begun.error();
  }
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
  double streamed_seconds = 0;                                    // of the last streamed pass, the worker's alone
  NewestWorker<Request, std::shared_ptr<const Computed>> worker;  // last: it stops before the rest goes

  Impl(std::function<void()> wake, double most_bytes)
      : most_held_bytes(most_bytes),
        worker(
            [this](const Request& request, const StopFlag* stop, const Publish& publish) {
              const PassOptions options = {.pool = &pool, .stop = stop, .most_held_bytes = most_held_bytes};
              return compute(request, sole_owner(take_spare()), streamed_seconds, options, publish);
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
  impl_->worker.request({session, std::nullopt}, small);
}

bool Engine::can_stop() const { return impl_->worker.is_published(); }
void Engine::stop() { impl_->worker.stop(); }
void Engine::resume(const Computed& stopped) { impl_->worker.request({stopped.session, stopped.trace}, false); }

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
