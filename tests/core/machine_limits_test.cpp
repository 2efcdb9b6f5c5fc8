// The yardstick of the benchmarks.
#include "core/attention/kernels/machine_limits.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace qkv;

TEST_CASE("the limits of this machine are rates, the time that they allow is their sum shared out") {
  const MachineLimits measured = measure_machine_limits(0.002);
  CHECK(measured.fma_gflops > 0);
  CHECK(std::isfinite(measured.fma_gflops));
  CHECK(measured.exp_gelems > 0);
  CHECK(std::isfinite(measured.exp_gelems));
  // An exponential costs more than one multiply-add: both rates come from the same instructions.
  CHECK(measured.fma_gflops > measured.exp_gelems);
  CHECK_FALSE(processor_name().empty());

  const MachineLimits limits{100, 4};
  CHECK(limits.seconds(200e9, 8e9, 1) == doctest::Approx(4));
  CHECK(limits.seconds(200e9, 8e9, 2) == doctest::Approx(2));
}
