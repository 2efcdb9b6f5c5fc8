// What the functions of bench_rows.h share: problems of random numbers, and timing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/cli/bench_rows.h"
#include "core/attention/kernel_pass.h"

namespace qkv::cli {

inline constexpr Index kBenchHeadSize = 64;
inline constexpr int kBenchHeads = 8;

// One run.
double seconds_of(const std::function<void()>& run);
// The median of several runs, after one that warms up.
double median_seconds(const BenchSettings& settings, const std::function<void()>& run);
// The same to `row`, with what the threads of the pool could have done meanwhile, measured between the runs.
void time_runs(const BenchSettings& settings, BenchRow& row, const std::function<void()>& run);

// The one whose total lies in the middle.
PictureSeconds median_of(std::vector<PictureSeconds> all);

struct Variant {
  const char* name;
  AttentionOptions options = {};
  int kv_heads = kBenchHeads;
};
std::vector<Variant> all_variants();

// Q, K and V of mean 0 and variance 1.
Problem direct_problem(const Variant& variant, int heads, Index n);

// X of kBenchHeads · kBenchHeadSize columns, weights that keep its variance, and W^O.
Problem layer_problem(Index n);

// Everything of a row but its time.
BenchRow row_of(const BenchSettings& settings, std::string work, const Variant& variant, int heads, Index n);

// `row` with the time of a pass that takes its memory over from the one before, as the window's does.
Result<BenchRow> time_pass(const BenchSettings& settings, const Problem& problem, BenchRow row);

}  // namespace qkv::cli
