#include "app/cli/bench_rows.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/attention/kernel_pass.h"
#include "core/session/tokenizer.h"

namespace qkv::cli {
namespace {

constexpr Index kHeadSize = 64;
constexpr int kHeads = 8;

// The median of at least `runs` runs and `least_seconds`, after one that warms up. `run` is false where it failed.
template <class Run>
double median_seconds(const BenchSettings& settings, const Run& run) {
  using Clock = std::chrono::steady_clock;
  const std::size_t runs = settings.quick ? 3 : 7;
  const double least_seconds = settings.quick ? 0.01 : 0.2;
  run();
  std::vector<double> times;
  for (double total = 0; times.size() < runs || total < least_seconds; total += times.back()) {
    const Clock::time_point start = Clock::now();
    run();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
  return times[times.size() / 2];
}

struct Variant {
  const char* name;
  AttentionOptions options = {};
  int kv_heads = kHeads;
};

std::vector<Variant> all_variants() {
  std::vector<Variant> variants{{"plain"},
                                {"causal", {.causal = true}},
                                {"rope", {.rope = Rope{}}},
                                {"softcap 20", {.softcap = 20.0F}},
                                {"alibi", {.alibi = true}},
                                {"window 128", {.window = 128}},
                                {"causal, window 128", {.causal = true, .window = 128}},
                                {"sink", {.sink = std::vector<float>(kHeads, 0.0F)}},
                                {"2 key/value heads", {}, 2}};
  return variants;
}

std::vector<SharedMatrix> random_heads(std::uint64_t seed, int heads, Index n) {
  std::vector<SharedMatrix> result;
  for (int h = 0; h < heads; ++h) {
    // Uniform in [−1, 1]; times √3 the variance is 1.
    result.emplace_back(Matrix(1.7320508F * random_matrix(seed + static_cast<std::uint64_t>(h), n, kHeadSize, 6)));
  }
  return result;
}

Problem direct_problem(const Variant& variant, int heads, Index n) {
  const int kv_heads = std::min(variant.kv_heads, heads);
  return {.source =
              DirectSource{random_heads(100, heads, n), random_heads(200, kv_heads, n), random_heads(300, kv_heads, n)},
          .options = variant.options};
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

BenchRow row_of(const BenchSettings& settings, std::string work, const Variant& variant, int heads, Index n) {
  const double pairs = heads * visible_pairs(variant.options, n);
  return {std::move(work),
          variant.name,
          heads,
          std::min(variant.kv_heads, heads),
          n,
          kHeadSize,
          settings.pool->threads(),
          0,
          4 * pairs * static_cast<double>(kHeadSize),
          pairs};
}

// Times a pass that takes its memory over from the one before, as the window's does.
Result<BenchRow> time_pass(const BenchSettings& settings, const Problem& problem, BenchRow row) {
  const Result<Shapes> shapes = check_shapes(problem);
  if (!shapes.ok()) return shapes.error();
  std::vector<std::shared_ptr<KernelHead>> buffers;
  std::optional<Error> error;
  row.seconds = median_seconds(settings, [&] {
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

// The row, or why there is none.
Status append(std::vector<BenchRow>& rows, const Result<BenchRow>& row) {
  if (!row.ok()) return row.error();
  rows.push_back(row.value());
  return Done{};
}

// O of every head, the rows shared out among the threads.
void attend_all(const BenchSettings& settings, const std::vector<KernelHead>& heads, std::vector<Matrix>& out,
                std::vector<KernelScratch>& scratch) {
  const auto output = [&](std::size_t h) {
    HeadOutput to;
    to.out = block_of(out[h]);
    return to;
  };
  const Index n = out.front().rows();
  const Index block = preferred_row_block(head_input(heads.front()), output(0)), blocks = (n + block - 1) / block;
  settings.pool->run(std::ssize(heads) * blocks, [&](std::ptrdiff_t task, int worker) {
    // The last rows of a causal head are the longest: first, so that no thread begins one when the others are done.
    const std::size_t h = static_cast<std::size_t>(task % std::ssize(heads));
    const Index first = (blocks - 1 - task / std::ssize(heads)) * block;
    attend_rows(head_input(heads[h]), first, std::min(block, n - first), output(h),
                scratch[static_cast<std::size_t>(worker)]);
  });
}

BenchRow time_output_alone(const BenchSettings& settings, const Variant& variant, int heads, Index n) {
  const Problem problem = direct_problem(variant, heads, n);
  const DirectSource& source = std::get<DirectSource>(problem.source);
  std::vector<KernelHead> kernels(static_cast<std::size_t>(heads));
  std::vector<Matrix> out(kernels.size(), Matrix::Zero(n, kHeadSize));
  for (std::size_t h = 0; h < kernels.size(); ++h) {
    kernels[h].q = source.q[h];
    kernels[h].options = variant.options;
    kernels[h].shapes = check_shapes(problem).value();
    kernels[h].head = static_cast<int>(h);
  }
  std::vector<KernelScratch> scratch(static_cast<std::size_t>(settings.pool->threads()));
  BenchRow row = row_of(settings, "output alone", variant, heads, n);
  row.seconds = median_seconds(settings, [&] {
    settings.pool->run(heads, [&](std::ptrdiff_t head, int) {
      const std::size_t h = static_cast<std::size_t>(head);
      kernels[h].kv = std::make_shared<PackedKeyValues>(view_of(*source.k[h]), view_of(*source.v[h]));
    });
    attend_all(settings, kernels, out, scratch);
  });
  return row;
}

}  // namespace

Result<std::vector<BenchRow>> bench_variants(const BenchSettings& settings) {
  const Index n = settings.quick ? 256 : 1024;
  std::vector<BenchRow> rows;
  for (const Variant& variant : all_variants()) {
    const Result<BenchRow> row =
        time_pass(settings, direct_problem(variant, kHeads, n), row_of(settings, "all steps", variant, kHeads, n));
    if (const Status added = append(rows, row); !added.ok()) return added.error();
  }
  return rows;
}

Result<std::vector<BenchRow>> bench_sizes(const BenchSettings& settings) {
  const std::vector<Index> sizes = settings.quick ? std::vector<Index>{64} : std::vector<Index>{64, 256, 512, 2048};
  std::vector<BenchRow> rows;
  for (const Index n : sizes) {
    for (const Variant& variant : {Variant{"plain"}, Variant{"causal", {.causal = true}}}) {
      const Result<BenchRow> row =
          time_pass(settings, direct_problem(variant, kHeads, n), row_of(settings, "all steps", variant, kHeads, n));
      if (const Status added = append(rows, row); !added.ok()) return added.error();
    }
  }
  return rows;
}

Result<std::vector<BenchRow>> bench_layer(const BenchSettings& settings) {
  const Index n = settings.quick ? 128 : 1024, width = kHeads * kHeadSize;
  // Uniform numbers in [−1, 1], times √(3 / width) to keep the variance of X.
  const auto weights = [&](std::uint64_t seed) {
    return SharedMatrix(Matrix(0.0765466F * random_matrix(seed, width, width, 6)));
  };
  const Problem problem{.source = ProjectedSource{.x = Matrix(1.7320508F * random_matrix(1, n, width, 6)),
                                                  .wq = weights(2),
                                                  .wk = weights(3),
                                                  .wv = weights(4),
                                                  .heads = kHeads,
                                                  .kv_heads = kHeads},
                        .wo = weights(5)};
  BenchRow row = row_of(settings, "layer", {"plain"}, kHeads, n);
  row.flops += 4 * 2 * static_cast<double>(n) * static_cast<double>(width) * static_cast<double>(width);
  std::vector<BenchRow> rows;
  if (const Status added = append(rows, time_pass(settings, problem, row)); !added.ok()) return added.error();
  return rows;
}

Result<std::vector<BenchRow>> bench_output_alone(const BenchSettings& settings) {
  struct Size {
    int heads;
    Index n;
  };
  const std::vector<Size> sizes =
      settings.quick ? std::vector<Size>{{1, 512}} : std::vector<Size>{{8, 2048}, {8, 4096}, {1, 16384}};
  std::vector<BenchRow> rows;
  for (const Size& size : sizes) {
    for (const Variant& variant : {Variant{"plain"}, Variant{"causal", {.causal = true}}}) {
      rows.push_back(time_output_alone(settings, variant, size.heads, size.n));
    }
  }
  return rows;
}

}  // namespace qkv::cli
