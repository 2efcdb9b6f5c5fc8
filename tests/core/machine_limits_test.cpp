// The yardstick of the benchmarks.
#include "core/attention/kernels/machine_limits.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace qkv;

TEST_CASE("the limits of this machine are rates, the time that they allow is their sum shared out") {
  ThreadPool pool(2);
  const MeasuredLimits measured = measure_machine_limits(pool, 0.002);
  for (const MachineLimits& rates : {measured.best, measured.held}) {
    CHECK(rates.fma_gflops > 0);
    CHECK(std::isfinite(rates.fma_gflops));
    CHECK(rates.exp_gelems > 0);
    CHECK(std::isfinite(rates.exp_gelems));
    // An exponential costs more than one multiply-add: both rates come from the same instructions.
    CHECK(rates.fma_gflops > rates.exp_gelems);
  }
  CHECK(measured.held.fma_gflops <= measured.best.fma_gflops);
  CHECK(measured.held.exp_gelems <= measured.best.exp_gelems);
  CHECK_FALSE(processor_name().empty());

  const MachineLimits limits{100, 4};
  CHECK(limits.seconds(200e9, 8e9, 1) == doctest::Approx(4));
  CHECK(limits.seconds(200e9, 8e9, 2) == doctest::Approx(2));
}
