// What `qkvlab bench` times: each function makes some rows of its table.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/attention/kernels/machine_limits.h"
#include "core/base/result.h"
#include "core/base/thread_pool.h"

namespace qkv::cli {

// Where the time goes from an edit to the pixels of its results.
struct PictureSeconds {
  double compute = 0;  // the frame that takes the edit in, numbers and what is told of them
  double layout = 0;   // the frame that shows them, and matrices made for it
  double opengl = 0;   // textures and pixels, until all are there
  double fill = 0;     // of these, the pixels alone
  double total() const { return compute + layout + opengl; }
};

// One computation and how long it takes.
struct BenchRow {
  std::string work;     // "all steps", "output alone", "layer", "edit", "edit to picture", "streamed"
  std::string variant;  // "plain", "causal", …; of an edit what was edited; of a streamed head what is made of it
  int heads = 1, kv_heads = 1;
  std::ptrdiff_t n = 0, d = 0;  // tokens; columns of a head
  int threads = 1;
  double seconds = 0;  // the median of several runs
  double flops = 0;    // of the products over visible cells; with `exps` what no full pass can leave out; 0 = untold
  double exps = 0;
  MachineLimits limits = {};                   // measured between the runs, where there are `flops`
  double full_seconds = 0;                     // of an edit: what the whole pass takes; else 0
  std::optional<PictureSeconds> picture = {};  // of an edit to picture: what `seconds` are made of

  bool is_edit() const { return full_seconds > 0; }
  double gflops() const { return flops / seconds * 1e-9; }
  // The least that the machine needs for this work.
  double limit_seconds() const { return limits.seconds(flops, exps, threads); }
};

struct BenchSettings {
  ThreadPool* pool = nullptr;
  bool quick = false;  // small sizes and few runs: every kind of row, within seconds
};

// Rows of one kind. Errors: as forward().
using BenchRows = Result<std::vector<BenchRow>> (*)(const BenchSettings&);

// The whole pass of a session, as the window computes it: scores and weights of every head are kept.
Result<std::vector<BenchRow>> bench_variants(const BenchSettings& settings);  // each variant at one size
Result<std::vector<BenchRow>> bench_sizes(const BenchSettings& settings);     // plain and causal, more sizes
Result<std::vector<BenchRow>> bench_layer(const BenchSettings& settings);  // X → Q, K, V → heads → Concat → W^O
// O alone, nothing of size N² is kept.
Result<std::vector<BenchRow>> bench_output_alone(const BenchSettings& settings);
// The trace brought up to date after one row of Q, of K or of V changed in every head.
Result<std::vector<BenchRow>> bench_edits(const BenchSettings& settings);
// The window, drawn into memory, after each kind of edit: one head and all heads. Errors also: kNoDisplay.
Result<std::vector<BenchRow>> bench_pictures(const BenchSettings& settings);
// A head of 131072 tokens that is never held: a coarse picture, the softmax of all rows with the overview, and a window
// of exact weights.
Result<std::vector<BenchRow>> bench_streamed(const BenchSettings& settings);

}  // namespace qkv::cli
