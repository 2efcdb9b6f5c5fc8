#include "app/cli/bench_support.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/seconds_since.h"
#include "core/session/tokenizer.h"

namespace qkv::cli {
namespace {

std::vector<SharedMatrix> random_heads(std::uint64_t seed, int heads, Index n) {
  std::vector<SharedMatrix> result;
  for (int h = 0; h < heads; ++h) {
    // Uniform in [−1, 1]; times √3 the variance is 1.
    result.emplace_back(Matrix(1.7320508F * random_matrix(seed + static_cast<std::uint64_t>(h), n, kBenchHeadSize, 6)));
  }
  return result;
}

// Visible cells of one head.
double visible_pairs(const AttentionOptions& options, Index n) {
  KernelMask mask;
  mask.causal = options.causal;
  mask.window = options.window.value_or(0);
  double pairs = 0;
  for (Index row = 0; row < n; ++row) {
    const KeyRange range = visible_range(mask, row, n);
    pairs += static_cast<double>(range.last - range.first);
  }
  return pairs;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// `after` is called with the time of each run.
template <class After>
double median_seconds(const BenchSettings& settings, const std::function<void()>& run, const After& after) {
  // Short ones are repeated for long enough that the clock and the scheduler do not decide.
  const std::size_t runs = settings.quick ? 3 : 7;
  const double least_seconds = settings.quick ? 0.01 : 0.2;
  run();
  std::vector<double> times;
  for (double total = 0; times.size() < runs || total < least_seconds; total += times.back()) {
    times.push_back(seconds_of(run));
    after(times.back());
  }
  return median(std::move(times));
}

}  // namespace

double seconds_of(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return seconds_since(start);
}

double median_seconds(const BenchSettings& settings, const std::function<void()>& run) {
  return median_seconds(settings, run, [](double /*seconds*/) {});
}

void time_runs(const BenchSettings& settings, BenchRow& row, const std::function<void()>& run) {
  constexpr double kEvery = 0.02, kBurst = 0.004;  // seconds: of runs before the machine is measured, and for how long
  std::vector<double> fma, exp;
  const auto measure = [&] {
    const MachineLimits held = measure_machine_limits(*settings.pool, kBurst).held;
    fma.push_back(held.fma_gflops);
    exp.push_back(held.exp_gelems);
  };
  double since = 0;
  measure();
  row.seconds = median_seconds(settings, run, [&](double seconds) {
    since += seconds;
    if (since < kEvery) return;
    measure();
    since = 0;
  });
  measure();
  row.limits = {median(fma), median(exp)};
}

PictureSeconds median_of(std::vector<PictureSeconds> all) {
  std::nth_element(all.begin(), all.begin() + std::ssize(all) / 2, all.end(),
                   [](const PictureSeconds& a, const PictureSeconds& b) { return a.total() < b.total(); });
  return all[all.size() / 2];
}

std::vector<Variant> all_variants() {
  return {{"plain"},
          {"causal", {.causal = true}},
          {"rope", {.rope = Rope{}}},
          {"softcap 20", {.softcap = 20.0F}},
          {"alibi", {.alibi = true}},
          {"window 128", {.window = 128}},
          {"causal, window 128", {.causal = true, .window = 128}},
          {"sink", {.sink = std::vector<float>(kBenchHeads, 0.0F)}},
          {"2 key/value heads", {}, 2}};
}

Problem direct_problem(const Variant& variant, int heads, Index n) {
  const int kv_heads = std::min(variant.kv_heads, heads);
  return {.source =
              DirectSource{random_heads(100, heads, n), random_heads(200, kv_heads, n), random_heads(300, kv_heads, n)},
          .options = variant.options};
}

Problem layer_problem(Index n) {
  constexpr Index kWidth = kBenchHeads * kBenchHeadSize;
  // Uniform numbers in [−1, 1], times √(3 / width) to keep the variance of X.
  const auto weights = [&](std::uint64_t seed) {
    return SharedMatrix(Matrix(0.0765466F * random_matrix(seed, kWidth, kWidth, 6)));
  };
  return {.source = ProjectedSource{.x = Matrix(1.7320508F * random_matrix(1, n, kWidth, 6)),
                                    .wq = weights(2),
                                    .wk = weights(3),
                                    .wv = weights(4),
                                    .heads = kBenchHeads,
                                    .kv_heads = kBenchHeads},
          .wo = weights(5)};
}

BenchRow row_of(const BenchSettings& settings, std::string work, const Variant& variant, int heads, Index n) {
  const double pairs = heads * visible_pairs(variant.options, n);
  return {std::move(work),
          variant.name,
          heads,
          std::min(variant.kv_heads, heads),
          n,
          kBenchHeadSize,
          settings.pool->threads(),
          0,
          4 * pairs * static_cast<double>(kBenchHeadSize),
          pairs};
}

Result<BenchRow> time_pass(const BenchSettings& settings, const Problem& problem, BenchRow row) {
  const Result<Shapes> shapes = check_shapes(problem);
  if (!shapes.ok()) return shapes.error();
  std::vector<std::shared_ptr<KernelHead>> buffers;
  std::optional<Error> error;
  time_runs(settings, row, [&] {
    Result<Trace> trace =
        fill_trace(problem, shapes.value(), {Arithmetic::kFloat32, settings.pool, nullptr}, std::exchange(buffers, {}));
    if (trace.ok()) {
      buffers = std::move(trace.value().kernels);
    } else {
      error = trace.error();
    }
  });
  if (error) return *error;
  return row;
}

}  // namespace qkv::cli
