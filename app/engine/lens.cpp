#include "app/engine/lens.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "app/engine/newest_worker.h"

namespace qkv {
namespace {

// A lens costs about this many passes.
constexpr double kPasses = 8;
constexpr double kInlineFlops = 1e6;  // as the engine's, of one core for under 2 ms
// H·Nq·Nk scores up to here: eight matrices of them in float64 and float32 take half a gigabyte.
constexpr double kMostScores = 1 << 23;

std::optional<Error> check_size(const Shapes& s) {
  const double scores = static_cast<double>(s.heads) * static_cast<double>(s.nq) * static_cast<double>(s.nk);
  if (scores <= kMostScores) return std::nullopt;
  return unsupported("Too much for a lens, which keeps every step in float64: " + std::to_string(s.heads) +
                     " heads of " + std::to_string(s.nq) + "×" + std::to_string(s.nk) +
                     " scores are more than 8,388,608. Use fewer tokens or heads");
}

void add(LensResult& result, MatrixKind kind, Matrix shown) {
  const bool masked = kind == MatrixKind::kAttn;
  const FiniteExtent extent = masked ? finite_extent(shown, result.request.of->trace.keep.get()) : finite_extent(shown);
  FiniteExtent& total = result.extents[static_cast<std::size_t>(scale_group(kind))];
  total = merge(total, extent);
  result.each.add(kind, extent);
  result.shown.add(kind, std::move(shown));
}

}  // namespace

int power_of(const FiniteExtent& extent) {
  const auto largest = static_cast<double>(std::max(std::abs(extent.low), std::abs(extent.high)));
  if (extent.count == 0 || largest == 0 || (largest >= 0.1 && largest < 1e4)) return 0;
  return static_cast<int>(std::floor(std::log10(largest)));
}

Result<std::shared_ptr<const LensResult>> look_through(const LensRequest& request, const StopFlag* stop) {
  const Trace& trace = request.of->trace;
  if (std::optional<Error> error = check_size(trace.shapes)) return *error;
  auto result = std::make_shared<LensResult>();
  result->request = request;
  if (const std::optional<NumberFormat> format = lens_format(request.lens)) {
    Result<Precision> computed = precision(*format, trace.problem, stop);
    if (!computed.ok()) return computed.error();
    result->precision = std::move(computed).value();
    const MatrixTable<Matrix> differences = std::exchange(result->precision->difference, {});
    for (const MatrixKind kind : kAllMatrixKinds) {
      for (const Matrix& difference : differences.heads(kind)) add(*result, kind, difference);
    }
  } else {
    Result<Gradient> computed = gradient(trace.problem, request.target, stop);
    if (!computed.ok()) return computed.error();
    result->gradient = std::move(computed).value();
    for (const MatrixKind kind : kAllMatrixKinds) {
      for (const MatrixD& by : result->gradient->by.heads(kind)) add(*result, kind, by.cast<float>());
    }
  }
  return std::shared_ptr<const LensResult>(std::move(result));
}

struct LensEngine::Impl {
  NewestWorker<LensRequest, std::shared_ptr<const LensResult>> worker;
};

LensEngine::LensEngine(std::function<void()> wake)
    : impl_(new Impl{
          {[](const LensRequest& request, const StopFlag* stop, const auto&) { return look_through(request, stop); },
           std::move(wake)}}) {}
LensEngine::~LensEngine() = default;

void LensEngine::request(const LensRequest& request) {
  impl_->worker.request(request, kPasses * estimated_flops(request.of->trace.shapes) <= kInlineFlops);
}

std::shared_ptr<const LensResult> LensEngine::take_result() { return impl_->worker.take_result().value_or(nullptr); }
std::optional<Error> LensEngine::take_error() { return impl_->worker.take_error(); }
bool LensEngine::busy() const { return impl_->worker.busy(); }
void LensEngine::wait() { impl_->worker.wait(); }

}  // namespace qkv
