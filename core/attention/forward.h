// The forward pass of multi-head attention, keeping every intermediate.
#pragma once

#include "core/attention/trace.h"
#include "core/base/thread_pool.h"

namespace qkv {

// The N² matrices of a pass that holds them may take so much: with what is made of them for looking at, and with the
// last pass still shown while the next runs, an eighth of 16 GiB is left to them.
inline constexpr double kMostHeldBytes = 2147483648.0;

struct PassOptions {
  Arithmetic arithmetic = Arithmetic::kAuto;
  ThreadPool* pool = nullptr;  // for kFloat32; nullptr = the calling thread alone
  const StopFlag* stop = nullptr;
  double most_held_bytes = kMostHeldBytes;  // beyond, the trace is streamed (see streamed_pass.h), in kFloat32
};

// Computes every head from the float32 Q, K and V that the trace shows. With kFloat64 nothing is rounded from there on
// before it is stored. Errors: as check_shapes; kCancelled when `stop` became true; kUnsupported when memory runs out.
Result<Trace> forward(const Problem& problem, const PassOptions& options = {});

// Q, K, V of a projected source in the layout of a direct one, from products in float64.
DirectSource project(const ProjectedSource& source, const Shapes& shapes);

// Bytes of scores, scaled and attn of all heads that a pass makes: none where the weights are given.
double held_bytes(const Shapes& shapes);

// Floating-point operations of the pass, to decide where and in what to run it.
double estimated_flops(const Shapes& shapes);

// What kAuto stands for: kFloat64 for passes of up to this many operations, about 5 ms on one core.
inline constexpr double kMostFloat64Flops = 2e7;
Arithmetic choose_arithmetic(const Shapes& shapes);

}  // namespace qkv
