#include "app/engine/background.h"

#include <utility>

namespace qkv {
namespace {

// A lens costs about this many passes.
constexpr double kPasses = 8;
constexpr double kInlineFlops = 1e6;  // as the engine's, of one core for under 2 ms

}  // namespace

LensEngine::LensEngine(std::function<void()> wake)
    : NewestWorker([](const auto& request, const StopFlag* stop, const auto&) { return look_through(request, stop); },
                   std::move(wake)) {}

void LensEngine::request(const LensRequest& request) {
  NewestWorker::request(request, kPasses * estimated_flops(request.of->trace.shapes) <= kInlineFlops);
}

CompareEngine::CompareEngine(std::function<void()> wake)
    : NewestWorker(
          [](const auto& request, const StopFlag* stop, const auto&) { return compare_with_file(request, stop); },
          std::move(wake)) {}

void CompareEngine::request(const CompareRequest& request) { NewestWorker::request(request, false); }

}  // namespace qkv
