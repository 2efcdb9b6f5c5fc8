// qkvlab's own kernels in the comparison, packing of K, V and the weights included.
#include <algorithm>
#include <memory>

#include "core/attention/kernels/gemm.h"
#include "core/attention/kernels/head_kernel.h"
#include "core/base/thread_pool.h"
#include "tests/bench/program.h"

namespace {

using namespace qkv;
using namespace qkv::bench;

class OurAttention {
 public:
  OurAttention(const Job& job, int threads) : job_(job), pool_(threads) {
    for (int i = 0; i < pool_.threads(); ++i) scratch_.emplace_back();
    const Index n = job.of.n, width = job.of.heads * kHeadSize;
    packed_.resize(static_cast<std::size_t>(job.of.heads));
    if (job.of.work != Work::kLayer) return;
    for (Floats* each : {&q_, &k_, &v_, &concat_}) *each = Floats(static_cast<std::size_t>(n * width));
  }

  void run() {
    const Inputs& inputs = *job_.inputs;
    const Index n = job_.of.n, width = job_.of.heads * kHeadSize;
    if (job_.of.work != Work::kLayer) {
      attend(inputs.q.data(), inputs.k.data(), inputs.v.data(), job_.outputs->out.data(), kHeadSize, n * kHeadSize);
      return;
    }
    project({{&inputs.x, &inputs.wq, &q_}, {&inputs.x, &inputs.wk, &k_}, {&inputs.x, &inputs.wv, &v_}}, kModelSize,
            width);
    attend(q_.data(), k_.data(), v_.data(), concat_.data(), width, kHeadSize);
    project({{&concat_, &inputs.wo, &job_.outputs->out}}, width, kModelSize);
  }

 private:
  struct Projection {
    const Floats* left;
    const Floats* factor;
    Floats* out;
  };

  // Every product of [N, depth] and [depth, cols], in pieces of rows.
  void project(const std::vector<Projection>& projections, Index depth, Index cols) {
    constexpr Index kRows = 48;
    const Index n = job_.of.n, blocks = (n + kRows - 1) / kRows;
    std::vector<std::unique_ptr<PackedFactor>> factors(projections.size());
    for (std::size_t i = 0; i < projections.size(); ++i) {
      const FloatView factor = {projections[i].factor->data(), depth, cols, cols};
      factors[i] = std::make_unique<PackedFactor>(factor, [&](Index parts, const auto& pack) {
        pool_.run(parts, [&](std::ptrdiff_t part, int) { pack(part); });
      });
    }
    pool_.run(std::ssize(projections) * blocks, [&](std::ptrdiff_t task, int) {
      const std::size_t i = static_cast<std::size_t>(task / blocks);
      const Index first = task % blocks * kRows, count = std::min(kRows, n - first);
      multiply({projections[i].left->data() + first * depth, count, depth, depth}, *factors[i], nullptr,
               {projections[i].out->data() + first * cols, count, cols, cols});
    });
  }

  // Heads whose rows are `stride` floats apart and that begin `head_step` floats after one another.
  void attend(const float* q, const float* k, const float* v, float* out, Index stride, Index head_step) {
    const Index n = job_.of.n, heads = job_.of.heads;
    const auto pack = [&](std::ptrdiff_t h, int) {
      const FloatView keys = {k + h * head_step, n, kHeadSize, stride};
      const FloatView values = {v + h * head_step, n, kHeadSize, stride};
      std::unique_ptr<PackedKeyValues>& packed = packed_[static_cast<std::size_t>(h)];
      packed ? packed->assign(keys, values) : void(packed = std::make_unique<PackedKeyValues>(keys, values));
    };
    const auto input = [&](Index h) {
      return HeadInput{.q = {q + h * head_step, n, kHeadSize, stride},
                       .kv = packed_[static_cast<std::size_t>(h)].get(),
                       .scaling = {.scale = 0.125F, .bias = {}},
                       .mask = {.causal = job_.of.causal},
                       .sink = {}};
    };
    static_assert(kHeadSize == 64, "scale is 1/8");
    const auto output = [&](Index h) {
      HeadOutput to;
      to.out = {out + h * head_step, n, kHeadSize, stride};
      if (job_.of.work == Work::kKept) to.weights = {job_.outputs->attn.data() + h * n * n, n, n, n};
      return to;
    };
    if (computes_whole_groups(heads, job_.of.flops() / static_cast<double>(heads), pool_.threads())) {
      pool_.run(heads, [&](std::ptrdiff_t h, int worker) {
        pack(h, worker);
        attend_rows(input(h), 0, n, output(h), scratch_[static_cast<std::size_t>(worker)]);
      });
      return;
    }
    pool_.run(heads, pack);
    const Index rows = preferred_row_block(input(0), output(0)), blocks = (n + rows - 1) / rows;
    pool_.run(heads * blocks, [&](std::ptrdiff_t task, int worker) {
      // Of a causal head the long rows first, so that no thread begins one when the others are done.
      const Index h = task / blocks, first = (blocks - 1 - task % blocks) * rows;
      attend_rows(input(h), first, std::min(rows, n - first), output(h), scratch_[static_cast<std::size_t>(worker)]);
    });
  }

  Job job_;
  ThreadPool pool_;
  std::vector<KernelScratch> scratch_;
  std::vector<std::unique_ptr<PackedKeyValues>> packed_;
  Floats q_, k_, v_, concat_;  // of a layer: [N, H·d]
};

Setup setup(int threads) {
  return {threads == 1 ? "one thread" : "blocks on threads", [threads](const Job& job) -> std::function<void()> {
            const auto attention = std::make_shared<OurAttention>(job, threads);
            return [attention] { attention->run(); };
          }};
}

std::vector<Setup> setups(const Job& job) {
  if (job.threads == 1) return {setup(1)};
  return {setup(job.threads), setup(1)};
}

}  // namespace

int main(int argc, char** argv) { return bench_main(argc, argv, {std::string("qkvlab ") + kernel_target(), setups}); }
