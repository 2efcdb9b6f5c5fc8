#include "app/cli/bench_rows.h"

#include <algorithm>
#include <utility>

#include "app/cli/bench_support.h"

namespace qkv::cli {
namespace {

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
  std::vector<Matrix> out(kernels.size(), Matrix::Zero(n, kBenchHeadSize));
  for (std::size_t h = 0; h < kernels.size(); ++h) {
    kernels[h].q = source.q[h];
    kernels[h].options = variant.options;
    kernels[h].shapes = check_shapes(problem).value();
    kernels[h].head = static_cast<int>(h);
  }
  std::vector<KernelScratch> scratch(static_cast<std::size_t>(settings.pool->threads()));
  BenchRow row = row_of(settings, "output alone", variant, heads, n);
  time_runs(settings, row, [&] {
    settings.pool->run(heads, [&](std::ptrdiff_t head, int) {
      const std::size_t h = static_cast<std::size_t>(head);
      if (kernels[h].kv) return kernels[h].kv->assign(view_of(*source.k[h]), view_of(*source.v[h]));
      kernels[h].kv = std::make_shared<PackedKeyValues>(view_of(*source.k[h]), view_of(*source.v[h]));
    });
    attend_all(settings, kernels, out, scratch);
  });
  return row;
}

// Every variant at every size.
Result<std::vector<BenchRow>> time_passes(const BenchSettings& settings, const std::vector<Variant>& variants,
                                          const std::vector<Index>& sizes) {
  std::vector<BenchRow> rows;
  for (const Index n : sizes) {
    for (const Variant& variant : variants) {
      const Result<BenchRow> row = time_pass(settings, direct_problem(variant, kBenchHeads, n),
                                             row_of(settings, "all steps", variant, kBenchHeads, n));
      if (!row.ok()) return row.error();
      rows.push_back(row.value());
    }
  }
  return rows;
}

}  // namespace

Result<std::vector<BenchRow>> bench_variants(const BenchSettings& settings) {
  return time_passes(settings, all_variants(), {settings.quick ? 256 : 1024});
}

Result<std::vector<BenchRow>> bench_sizes(const BenchSettings& settings) {
  const std::vector<Variant> variants{{"plain"}, {"causal", {.causal = true}}};
  return time_passes(settings, variants,
                     settings.quick ? std::vector<Index>{64} : std::vector<Index>{64, 256, 512, 2048});
}

Result<std::vector<BenchRow>> bench_layer(const BenchSettings& settings) {
  const Index n = settings.quick ? 128 : 1024, width = kBenchHeads * kBenchHeadSize;
  const Problem problem = layer_problem(n);
  BenchRow row = row_of(settings, "layer", {"plain"}, kBenchHeads, n);
  row.flops += 4 * 2 * static_cast<double>(n) * static_cast<double>(width) * static_cast<double>(width);
  const Result<BenchRow> timed = time_pass(settings, problem, row);
  if (!timed.ok()) return timed.error();
  return std::vector<BenchRow>{timed.value()};
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
