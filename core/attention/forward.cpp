#include "core/attention/forward.h"

#include <chrono>
#include <new>
#include <string>

#include "core/attention/exact_pass.h"
#include "core/attention/given_weights.h"
#include "core/attention/kernel_pass.h"
#include "core/attention/streamed_pass.h"
#include "core/base/seconds_since.h"

namespace qkv {

Result<Trace> forward(const Problem& problem, const PassOptions& options) {
  const Result<Shapes> shapes = check_shapes(problem);
  if (!shapes.ok()) return shapes.error();
  return fill_trace(problem, shapes.value(), options, {});
}

Result<Trace> fill_trace(const Problem& problem, const Shapes& shapes, const PassOptions& options,
                         std::vector<std::shared_ptr<KernelHead>> buffers) {
  if (is_weights_only(problem.source)) return given_trace(problem, shapes);
  const auto start = std::chrono::steady_clock::now();
  Trace trace;
  trace.problem = problem;
  trace.shapes = shapes;
  trace.arithmetic = options.arithmetic == Arithmetic::kAuto ? choose_arithmetic(shapes) : options.arithmetic;
  const bool streamed = held_bytes(shapes) > options.most_held_bytes;
  try {
    if (streamed) return streamed_pass(problem, shapes, options);
    const bool complete = trace.arithmetic == Arithmetic::kFloat64 ? exact_pass(trace, options.stop)
                                                                   : kernel_pass(trace, options, std::move(buffers));
    if (!complete) return Error{ErrorCode::kCancelled, "the computation was stopped"};
  } catch (const std::bad_alloc&) {
    return unsupported("not enough memory to keep every step of " + std::to_string(shapes.heads) + " heads of " +
                       std::to_string(shapes.nq) + "×" + std::to_string(shapes.nk) +
                       " scores: use fewer tokens or heads");
  }
  trace.seconds = seconds_since(start);
  return trace;
}

double held_bytes(const Shapes& shapes) {
  constexpr double kCellBytes = 3 * sizeof(float);
  if (shapes.d_k == 0) return 0;  // given weights are the problem's own
  return kCellBytes * shapes.heads * static_cast<double>(shapes.nq) * static_cast<double>(shapes.nk);
}

double estimated_flops(const Shapes& shapes) {
  const auto nq = static_cast<double>(shapes.nq), nk = static_cast<double>(shapes.nk);
  const auto d_k = static_cast<double>(shapes.d_k), d_v = static_cast<double>(shapes.d_v);
  const double heads = shapes.heads, kv_heads = shapes.kv_heads;
  // A product of [n, k] and [k, m] takes 2·n·k·m; a softmax about 20 a cell, most of it in exp.
  const double projections = 2 * nq * static_cast<double>(shapes.d_model) * (heads * d_k + kv_heads * (d_k + d_v));
  const double attention = heads * nq * nk * (2 * d_k + 20 + 2 * d_v);
  const double output = 2 * nq * heads * d_v * static_cast<double>(shapes.d_out);
  return projections + attention + output;
}

Arithmetic choose_arithmetic(const Shapes& shapes) {
  return estimated_flops(shapes) <= kMostFloat64Flops ? Arithmetic::kFloat64 : Arithmetic::kFloat32;
}

}  // namespace qkv
