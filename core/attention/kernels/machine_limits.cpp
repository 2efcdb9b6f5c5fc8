#include "core/attention/kernels/machine_limits.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/kernels/machine_limits.cpp"
// Highway compiles what follows once for each target.
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// `rounds` times twelve multiply-adds that do not wait for one another: two units with a latency of up to six cycles
// are kept busy. Returns the operations done; `seed` and `sink` keep the compiler from knowing the result.
double fma_burst(int rounds, float seed, float* sink) {
  const D d;
  const V by = hn::Set(d, 0.5F + seed), plus = hn::Set(d, seed);
  // Each begins with another number: equal ones would be computed once.
  V a0 = hn::Set(d, seed), a1 = hn::Add(a0, plus), a2 = hn::Add(a1, plus), a3 = hn::Add(a2, plus);
  V a4 = hn::Add(a3, plus), a5 = hn::Add(a4, plus), a6 = hn::Add(a5, plus), a7 = hn::Add(a6, plus);
  V a8 = hn::Add(a7, plus), a9 = hn::Add(a8, plus), a10 = hn::Add(a9, plus), a11 = hn::Add(a10, plus);
  for (int i = 0; i < rounds; ++i) {
    a0 = hn::MulAdd(a0, by, plus);
    a1 = hn::MulAdd(a1, by, plus);
    a2 = hn::MulAdd(a2, by, plus);
    a3 = hn::MulAdd(a3, by, plus);
    a4 = hn::MulAdd(a4, by, plus);
    a5 = hn::MulAdd(a5, by, plus);
    a6 = hn::MulAdd(a6, by, plus);
    a7 = hn::MulAdd(a7, by, plus);
    a8 = hn::MulAdd(a8, by, plus);
    a9 = hn::MulAdd(a9, by, plus);
    a10 = hn::MulAdd(a10, by, plus);
    a11 = hn::MulAdd(a11, by, plus);
  }
  const V low = hn::Add(hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)), hn::Add(a4, a5));
  const V high = hn::Add(hn::Add(hn::Add(a6, a7), hn::Add(a8, a9)), hn::Add(a10, a11));
  *sink = hn::GetLane(hn::SumOfLanes(d, hn::Add(low, high)));
  return 2.0 * 12 * rounds * static_cast<double>(hn::Lanes(d));
}

// 2^x for −126 ≤ x ≤ 0, relative error under 2 eps. Adding 1.5·2^23 rounds to a whole number and leaves it in the
// lowest bits, from where it goes into the exponent; a polynomial of degree 5 (minimax on [−½, ½]) stands for the rest.
HWY_INLINE V exp2_of(D d, V x) {
  const hn::RebindToSigned<D> di;
  x = hn::Max(x, hn::Set(d, -126.0F));
  const V shifted = hn::Add(x, hn::Set(d, 12582912.0F));
  const V f = hn::Sub(x, hn::Sub(shifted, hn::Set(d, 12582912.0F)));
  V p = hn::Set(d, 1.3276471979478776e-3F);
  p = hn::MulAdd(p, f, hn::Set(d, 9.67554133421605e-3F));
  p = hn::MulAdd(p, f, hn::Set(d, 5.550713273542586e-2F));
  p = hn::MulAdd(p, f, hn::Set(d, 2.4022119723848476e-1F));
  p = hn::MulAdd(p, f, hn::Set(d, 6.931469670647331e-1F));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0000000716546822F));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
}

// `rounds` times the exponentials of all `scores`, scaled, stored and summed as a softmax does. `count` is a multiple
// of 64, more than any vector here times two. Returns the exponentials done.
double exp_burst(int rounds, const float* scores, float* weights, int count, float* sink) {
  const D d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const V by = hn::Set(d, 1.4426950408889634F), less = hn::Set(d, scores[0]);
  V s0 = hn::Zero(d), s1 = s0;
  for (int i = 0; i < rounds; ++i) {
    for (int j = 0; j + 2 * lanes <= count; j += 2 * lanes) {
      const V e0 = exp2_of(d, hn::MulSub(hn::LoadU(d, scores + j), by, less));
      const V e1 = exp2_of(d, hn::MulSub(hn::LoadU(d, scores + j + lanes), by, less));
      hn::StoreU(e0, d, weights + j);
      hn::StoreU(e1, d, weights + j + lanes);
      s0 = hn::Add(s0, e0);
      s1 = hn::Add(s1, e1);
    }
  }
  *sink = hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
  return static_cast<double>(rounds) * count;
}

}  // namespace
}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {
namespace {

HWY_EXPORT(fma_burst);
HWY_EXPORT(exp_burst);

struct Rates {
  double best = 0, median = 0;
};

// Rates, in 10⁹ a second, that `burst` reaches within the time; it returns how much it did.
template <class Burst>
Rates rates_of(double seconds, const Burst& burst) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  std::vector<double> rates;
  for (const Clock::time_point begin = Clock::now(); since(begin) < seconds || rates.empty();) {
    const Clock::time_point start = Clock::now();
    const double done = burst();
    if (const double took = since(start); took > 0) rates.push_back(done / took * 1e-9);
  }
  std::ranges::sort(rates);
  return {rates.back(), rates[rates.size() / 2]};
}

MeasuredLimits measure_on_this_thread(double seconds) {
  volatile float sink = 0;
  float result = 0;
  const Rates fma = rates_of(seconds / 2, [&] {
    const double done = HWY_DYNAMIC_DISPATCH(fma_burst)(20000, 0.25F, &result);
    sink = result;
    return done;
  });
  std::array<float, 2048> scores{}, weights{};
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = -static_cast<float>(i % 16) / 2;
  const Rates exp = rates_of(seconds / 2, [&] {
    const double done =
        HWY_DYNAMIC_DISPATCH(exp_burst)(50, scores.data(), weights.data(), static_cast<int>(scores.size()), &result);
    sink = result;
    return done;
  });
  return {{fma.best, exp.best}, {fma.median, exp.median}};
}

}  // namespace

MeasuredLimits measure_machine_limits(ThreadPool& pool, double seconds) {
  std::vector<MeasuredLimits> all(static_cast<std::size_t>(pool.threads()));
  pool.run(pool.threads(),
           [&](std::ptrdiff_t task, int) { all[static_cast<std::size_t>(task)] = measure_on_this_thread(seconds); });
  MeasuredLimits limits;
  const double share = 1.0 / pool.threads();
  for (const MeasuredLimits& each : all) {
    limits.best.fma_gflops = std::max(limits.best.fma_gflops, each.best.fma_gflops);
    limits.best.exp_gelems = std::max(limits.best.exp_gelems, each.best.exp_gelems);
    limits.held.fma_gflops += share * each.held.fma_gflops;
    limits.held.exp_gelems += share * each.held.exp_gelems;
  }
  return limits;
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

}  // namespace qkv
#endif  // HWY_ONCE
