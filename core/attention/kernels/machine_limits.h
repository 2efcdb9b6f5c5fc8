// What the threads of this machine can do at most, measured: the yardstick of benchmarks.
#pragma once

#include <string>

#include "core/base/thread_pool.h"

namespace qkv {

// Of one thread.
struct MachineLimits {
  double fma_gflops = 0;  // 10⁹ float32 operations a second in multiply-adds on registers alone, each counted as two
  double exp_gelems = 0;  // 10⁹ float32 exponentials a second, as in a softmax: from the first-level cache and back
  // The least time, in seconds, that `threads` threads need for so many operations and exponentials.
  double seconds(double flops, double exps, int threads) const {
    return (flops / fma_gflops + exps / exp_gelems) * 1e-9 / threads;
  }
};

struct MeasuredLimits {
  MachineLimits best;  // of the quickest burst: what a thread can do
  MachineLimits held;  // of the median burst: what it does now, at the clock and with the neighbours that it has
};

// Measures on all threads of the pool at once, and the SIMD target of kernel_target(): many bursts, each some ten
// microseconds; `seconds` in all. `held` is the mean of the threads.
MeasuredLimits measure_machine_limits(ThreadPool& pool, double seconds = 0.03);

// "AMD EPYC", "Intel(R) Xeon(R) …": the processor's own name, or "unknown processor".
std::string processor_name();

}  // namespace qkv
