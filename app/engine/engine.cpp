#include "app/engine/engine.h"

#include <utility>

#include "app/engine/newest_worker.h"

namespace qkv {
namespace {

// Up to here a pass takes under 2 ms on one core of a small machine (about 1 GFLOP/s in the worst case).
constexpr double kInlineFlops = 1e6;

Result<std::shared_ptr<const Computed>> compute(const Session& session, const StopFlag* stop) {
  if (const Result<Shapes> shapes = check_session(session); !shapes) return shapes.error();
  Result<Trace> trace = forward(session.problem, stop);
  if (!trace) return trace.error();
  auto computed = std::make_shared<Computed>(Computed{session, std::move(trace).value(), {}});
  computed->digest = digest(computed->trace);
  return std::shared_ptr<const Computed>(std::move(computed));
}

}  // namespace

struct Engine::Impl {
  NewestWorker<Session, std::shared_ptr<const Computed>> worker;
};

Engine::Engine(std::function<void()> wake) : impl_(new Impl{{compute, std::move(wake)}}) {}
Engine::~Engine() = default;

void Engine::request(const Session& session) {
  const Result<Shapes> shapes = check_session(session);
  impl_->worker.request(session, !shapes || estimated_flops(shapes.value()) <= kInlineFlops);
}

std::shared_ptr<const Computed> Engine::take_result() { return impl_->worker.take_result().value_or(nullptr); }
std::optional<Error> Engine::take_error() { return impl_->worker.take_error(); }
bool Engine::busy() const { return impl_->worker.busy(); }
void Engine::wait() { impl_->worker.wait(); }

}  // namespace qkv
