// The forward pass of multi-head attention, keeping every intermediate.
#pragma once

#include "core/attention/trace.h"
#include "core/base/thread_pool.h"

namespace qkv {

struct PassOptions {
  Arithmetic arithmetic = Arithmetic::kAuto;
  ThreadPool* pool = nullptr;  // for kFloat32; nullptr = the calling thread alone
  const StopFlag* stop = nullptr;
};

// Computes every head from the float32 Q, K and V that the trace shows. With kFloat64 nothing is rounded from there on
// before it is stored. Errors: as check_shapes; kCancelled when `stop` became true; kUnsupported when memory runs out.
Result<Trace> forward(const Problem& problem, const PassOptions& options = {});

// Q, K, V of a projected source in the layout of a direct one, from products in float64.
DirectSource project(const ProjectedSource& source, const Shapes& shapes);

// Floating-point operations of the pass, to decide where and in what to run it.
double estimated_flops(const Shapes& shapes);

// What kAuto stands for: kFloat64 for passes of up to this many operations, about 5 ms on one core.
inline constexpr double kMostFloat64Flops = 2e7;
Arithmetic choose_arithmetic(const Shapes& shapes);

}  // namespace qkv
