#include "app/engine/engine.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>

namespace qkv {
namespace {

// Up to here a pass takes under 2 ms on one core of a small machine (about 1 GFLOP/s in the worst case).
constexpr double kInlineFlops = 1e6;
// A running pass older than this gives way to a newer request; a younger one is let finish, so that a drag keeps
// showing results.
constexpr auto kPatience = std::chrono::milliseconds(400);

using Outcome = Result<std::shared_ptr<const Computed>>;

Outcome compute(const Session& session, const StopFlag* stop) {
  if (const Result<Shapes> shapes = check_session(session); !shapes) return shapes.error();
  Result<Trace> trace = forward(session.problem, {.stop = stop});
  if (!trace) return trace.error();
  auto computed = std::make_shared<Computed>(Computed{session, std::move(trace).value(), {}});
  computed->digest = digest(computed->trace);
  return std::shared_ptr<const Computed>(std::move(computed));
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
      lock.unlock();
      Outcome outcome = compute(session, &stop);
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
  const bool small = !shapes || estimated_flops(shapes.value()) <= kInlineFlops;
  std::unique_lock lock(impl_->mutex);
  if (small && !impl_->running) {
    impl_->waiting.reset();
    impl_->finished = compute(session, nullptr);
    return;
  }
  impl_->waiting = session;
  if (impl_->running && (small || std::chrono::steady_clock::now() - impl_->started > kPatience)) impl_->stop = true;
  if (!impl_->worker.joinable()) impl_->worker = std::thread([impl = impl_.get()] { impl->work(); });
  lock.unlock();
  impl_->changed.notify_all();
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
