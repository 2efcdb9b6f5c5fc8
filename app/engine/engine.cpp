#include "app/engine/engine.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>

#include "core/attention/update.h"

namespace qkv {
namespace {

// A request that takes about as long as this is computed at once: the frame of 16 ms that shows it is not missed.
constexpr double kInlineSeconds = 6e-3;
// What a small machine does in a second: operations of the two paths, and cells of a head that are digested.
constexpr double kFloat64Rate = 4e9, kFloat32Rate = 6e10, kDigestRate = 4e8;
// Largest matrices of scores and weights that are kept twice, to be edited in turns.
constexpr double kMostSpareBytes = 2e9;
// A running pass older than this gives way to a newer request; a younger one is let finish, so that a drag keeps
// showing results.
constexpr auto kPatience = std::chrono::milliseconds(400);

using Outcome = Result<std::shared_ptr<const Computed>>;

// What nobody else holds, to be written again.
std::shared_ptr<Computed> sole_owner(std::shared_ptr<const Computed> spare) {
  if (spare.use_count() != 1) return nullptr;
  std::atomic_thread_fence(std::memory_order_acquire);  // what its last reader did comes before what is written now
  return std::const_pointer_cast<Computed>(std::move(spare));
}

Outcome compute(const Session& session, std::shared_ptr<Computed> spare, ThreadPool& pool, const StopFlag* stop) {
  if (const Result<Shapes> shapes = check_session(session); !shapes) return shapes.error();
  const PassOptions options = {.pool = &pool, .stop = stop};
  UpdateReport report;
  Result<Trace> trace =
      spare ? update(std::move(spare->trace), session.problem, options, &report) : forward(session.problem, options);
  if (!trace) return trace.error();
  auto computed = std::make_shared<Computed>(Computed{session, std::move(trace).value(), {}});
  computed->digest = digest(computed->trace, &pool, spare ? &spare->digest : nullptr, report.same);
  return std::shared_ptr<const Computed>(std::move(computed));
}

// To compute `problem` and its digest, from `spare` where that can be edited.
double estimated_seconds(const Problem& problem, const Shapes& shapes, const std::shared_ptr<const Computed>& spare) {
  const double full = estimated_flops(shapes), cells = static_cast<double>(shapes.nq) * static_cast<double>(shapes.nk);
  if (choose_arithmetic(shapes) == Arithmetic::kFloat64) return full / kFloat64Rate;
  const double flops = spare ? estimated_update_flops(spare->trace, problem) : full;
  const int heads = spare && flops < full ? count_touched_heads(spare->trace, problem) : shapes.heads;
  return flops / kFloat32Rate + cells * heads / kDigestRate;
}

}  // namespace

struct Engine::Impl {
  std::function<void()> wake;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::optional<Session> waiting;
  std::optional<Outcome> finished;
  bool running = false, quit = false;
  std::chrono::steady_clock::time_point started;
  StopFlag stop = false;
  ThreadPool pool;
  std::shared_ptr<const Computed> spare;  // the last result that was taken back
  std::thread worker;

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return quit || waiting; });
      if (quit) return;
      const Session session = std::move(*waiting);
      waiting.reset();
      running = true;
      stop = false;
      started = std::chrono::steady_clock::now();
      std::shared_ptr<const Computed> mine = std::move(spare);
      lock.unlock();
      Outcome outcome = compute(session, sole_owner(std::move(mine)), pool, &stop);
      lock.lock();
      running = false;
      if (outcome.ok() || outcome.error().code != ErrorCode::kCancelled) finished = std::move(outcome);
      changed.notify_all();
      if (wake) {
        lock.unlock();
        wake();
        lock.lock();
      }
    }
  }
};

Engine::Engine(std::function<void()> wake) : impl_(std::make_unique<Impl>()) { impl_->wake = std::move(wake); }

Engine::~Engine() {
  {
    const std::scoped_lock lock(impl_->mutex);
    impl_->quit = true;
    impl_->stop = true;
  }
  impl_->changed.notify_all();
  if (impl_->worker.joinable()) impl_->worker.join();
}

void Engine::request(const Session& session) {
  const Result<Shapes> shapes = check_session(session);
  std::unique_lock lock(impl_->mutex);
  const bool small = !shapes || estimated_seconds(session.problem, shapes.value(), impl_->spare) <= kInlineSeconds;
  if (small && !impl_->running) {
    impl_->waiting.reset();
    impl_->finished = compute(session, sole_owner(std::move(impl_->spare)), impl_->pool, nullptr);
    return;
  }
  impl_->waiting = session;
  if (impl_->running && (small || std::chrono::steady_clock::now() - impl_->started > kPatience)) impl_->stop = true;
  if (!impl_->worker.joinable()) impl_->worker = std::thread([impl = impl_.get()] { impl->work(); });
  lock.unlock();
  impl_->changed.notify_all();
}

void Engine::recycle(std::shared_ptr<const Computed> shown) {
  if (!shown) return;
  const Shapes& shapes = shown->trace.shapes;
  const double bytes = 8.0 * static_cast<double>(shapes.nq) * static_cast<double>(shapes.nk) * shapes.heads;
  if (bytes > kMostSpareBytes) return;
  const std::scoped_lock lock(impl_->mutex);
  impl_->spare = std::move(shown);
}

std::shared_ptr<const Computed> Engine::take_result() {
  const std::scoped_lock lock(impl_->mutex);
  if (impl_->running && impl_->waiting && std::chrono::steady_clock::now() - impl_->started > kPatience)
    impl_->stop = true;
  if (!impl_->finished || !impl_->finished->ok()) return nullptr;
  auto result = std::move(*impl_->finished).value();
  impl_->finished.reset();
  return result;
}

std::optional<Error> Engine::take_error() {
  const std::scoped_lock lock(impl_->mutex);
  if (!impl_->finished || impl_->finished->ok()) return std::nullopt;
  Error error = impl_->finished->error();
  impl_->finished.reset();
  return error;
}

bool Engine::busy() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->running || impl_->waiting;
}

void Engine::wait() {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] { return !impl_->running && !impl_->waiting; });
}

}  // namespace qkv
