// What one thread of this machine can do at most, measured: the yardstick of benchmarks.
#pragma once

#include <string>

namespace qkv {

struct MachineLimits {
  double fma_gflops = 0;  // 10⁹ float32 operations a second in multiply-adds on registers alone, each counted as two
  double exp_gelems = 0;  // 10⁹ float32 exponentials a second, as in a softmax: from the first-level cache and back
  // The least time, in seconds, that `threads` threads need for so many operations and exponentials.
  double seconds(double flops, double exps, int threads) const {
    return (flops / fma_gflops + exps / exp_gelems) * 1e-9 / threads;
  }
};

// Measures on the calling thread and the SIMD target of kernel_target(). Takes the best of many short bursts, each some
// ten microseconds, so that other programs disturb little; `seconds` in all.
MachineLimits measure_machine_limits(double seconds = 0.03);

// "AMD EPYC", "Intel(R) Xeon(R) …": the processor's own name, or "unknown processor".
std::string processor_name();

}  // namespace qkv
