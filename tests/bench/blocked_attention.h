// Attention in blocks of rows around a library's matrix product: what a good programmer writes on top of a BLAS.
// Only for programs that are compiled whole with one set of flags, see softmax_rows.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/program.h"
#include "tests/bench/softmax_rows.h"
#include "tests/bench/workers.h"

namespace qkv::bench {

// c [m, n] = a [m, k] · b [k, n], or += it; rows are ld… floats apart. b_transposed: b is stored [n, k].
struct Product {
  int m = 0, n = 0, k = 0;
  const float* a = nullptr;
  int lda = 0;
  const float* b = nullptr;
  int ldb = 0;
  bool b_transposed = false;
  float* c = nullptr;
  int ldc = 0;
  bool add = false;
};

// A library: `multiply` may be called from several threads at once, each of which has run `begin_thread`.
struct Library {
  std::string name;
  std::function<void(const Product&)> multiply;
  std::function<void()> begin_thread = [] {};
  std::function<void(int)> set_threads = {};  // how many the library's own product uses; empty where it has none
  // fn(piece) for every piece below the number, on the threads of the library's own product; empty: on ours
  std::function<void(int pieces, const std::function<void(int)>& fn)> on_own_threads = {};
};

// How the work is cut and who does it.
struct Blocking {
  int rows = 0;              // queries in a block
  int keys = 0;              // keys in a block, where A is not kept; N = all at once
  bool own_threads = false;  // the library's threads, one product after the other; else blocks go to our threads
};

// One head, its rows `stride` floats apart in Q, K and V and `out_stride` in O.
struct Head {
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  int stride = 0;
  float* attn = nullptr;  // [N, N] where it is kept
  float* out = nullptr;
  int out_stride = 0;
};

class BlockedAttention {
 public:
  BlockedAttention(const Library& library, const Job& job, const Blocking& blocking)
      : library_(library),
        job_(job),
        blocking_(blocking),
        workers_(job.threads, blocking.own_threads ? Idle::kSleep : Idle::kSpin, library.begin_thread) {
    library_.begin_thread();
    if (library_.set_threads) library_.set_threads(blocking.own_threads ? job.threads : 1);
    const std::size_t rows = static_cast<std::size_t>(blocking.rows), keys = static_cast<std::size_t>(blocking.keys);
    const std::size_t scratch = job.of.work == Work::kKept ? 0 : rows * keys;
    for (int worker = 0; worker < workers_.threads(); ++worker) scratch_.push_back({Floats(scratch), {}, {}});
    for (Scratch& each : scratch_) each.largest.resize(rows), each.sum.resize(rows);
    if (job.of.work == Work::kLayer) prepare_layer();
  }

  void run() {
    if (job_.of.work == Work::kLayer) {
      const int width = 3 * job_.of.heads * kHeadSize;
      project(job_.inputs->x.data(), kModelSize, wqkv_, width, qkv_.data());
      attend();
      project(concat_.data(), job_.of.heads * kHeadSize, job_.inputs->wo, kModelSize, job_.outputs->out.data());
    } else {
      attend();
    }
  }

 private:
  struct Scratch {
    Floats scores;                    // [rows, keys]
    std::vector<float> largest, sum;  // of each row so far
  };

  // The three weights side by side: one product instead of three.
  void prepare_layer() {
    const std::size_t n = static_cast<std::size_t>(job_.of.n),
                      width = static_cast<std::size_t>(job_.of.heads) * kHeadSize;
    wqkv_ = Floats(kModelSize * 3 * width);
    qkv_ = Floats(n * 3 * width);
    concat_ = Floats(n * width);
    const Floats* parts[] = {&job_.inputs->wq, &job_.inputs->wk, &job_.inputs->wv};
    for (std::size_t row = 0; row < kModelSize; ++row) {
      for (std::size_t part = 0; part < 3; ++part) {
        std::copy_n(parts[part]->data() + row * width, width, wqkv_.data() + (row * 3 + part) * width);
      }
    }
  }

  Head head(int h) {
    const std::ptrdiff_t n = job_.of.n, width = job_.of.heads * kHeadSize, at = h * n * kHeadSize;
    if (job_.of.work == Work::kLayer) {
      const float* q = qkv_.data() + h * kHeadSize;
      return {q,
              q + width,
              q + 2 * width,
              static_cast<int>(3 * width),
              nullptr,
              concat_.data() + h * kHeadSize,
              static_cast<int>(width)};
    }
    float* attn = job_.of.work == Work::kKept ? job_.outputs->attn.data() + h * n * n : nullptr;
    return {job_.inputs->q.data() + at,
            job_.inputs->k.data() + at,
            job_.inputs->v.data() + at,
            kHeadSize,
            attn,
            job_.outputs->out.data() + at,
            kHeadSize};
  }

  void attend() {
    const int n = job_.of.n, blocks = (n + blocking_.rows - 1) / blocking_.rows;
    const auto block = [&](int index, int worker) {
      // Of a causal head the long rows first, so that no thread begins one when the others are done.
      const int at = blocks - 1 - index / job_.of.heads;
      const int first = at * blocking_.rows, count = std::min(blocking_.rows, n - first);
      const Head of = head(index % job_.of.heads);
      if (of.attn != nullptr) {
        keep_block(of, first, count);
      } else {
        fuse_block(of, first, count, scratch_[static_cast<std::size_t>(worker)]);
      }
    };
    if (!blocking_.own_threads) return workers_.for_each(blocks * job_.of.heads, block);
    for (int index = 0; index < blocks * job_.of.heads; ++index) block(index, 0);
  }

  // fn(row) for every row of a block: on one thread where blocks are spread over threads, else on all of them.
  template <class Function>
  void for_rows(int count, const Function& fn) {
    const int pieces = blocking_.own_threads ? workers_.threads() : 1;
    if (pieces == 1) {
      for (int row = 0; row < count; ++row) fn(row);
      return;
    }
    const std::function<void(int)> part = [&](int piece) {
      for (int row = piece * count / pieces; row < (piece + 1) * count / pieces; ++row) fn(row);
    };
    if (library_.on_own_threads) return library_.on_own_threads(pieces, part);
    workers_.for_each(pieces, [&](int piece, int) { part(piece); });
  }

  // Keys that query `row` sees.
  int visible(int row) const { return job_.of.causal ? row + 1 : job_.of.n; }

  void keep_block(const Head& of, int first, int count) {
    const int n = job_.of.n, keys = visible(first + count - 1);
    float* attn = of.attn + static_cast<std::ptrdiff_t>(first) * n;
    library_.multiply({count, keys, kHeadSize, of.q + static_cast<std::ptrdiff_t>(first) * of.stride, of.stride, of.k,
                       of.stride, true, attn, n, false});
    for_rows(count, [&](int row) {
      float* weights = attn + static_cast<std::ptrdiff_t>(row) * n;
      const int seen = visible(first + row);
      const float sum = exp_row(weights, seen, kFactor, kFactor * row_max(weights, seen));
      scale_row(weights, seen, 1 / sum);
      std::memset(weights + seen, 0, static_cast<std::size_t>(n - seen) * sizeof(float));
    });
    library_.multiply({count, kHeadSize, keys, attn, n, of.v, of.stride, false,
                       of.out + static_cast<std::ptrdiff_t>(first) * of.out_stride, of.out_stride, false});
  }

  void fuse_block(const Head& of, int first, int count, Scratch& scratch) {
    float* out = of.out + static_cast<std::ptrdiff_t>(first) * of.out_stride;
    const int all = visible(first + count - 1);
    for (int key = 0; key < all; key += blocking_.keys) {
      const int keys = std::min(blocking_.keys, all - key);
      float* scores = scratch.scores.data();
      library_.multiply({count, keys, kHeadSize, of.q + static_cast<std::ptrdiff_t>(first) * of.stride, of.stride,
                         of.k + static_cast<std::ptrdiff_t>(key) * of.stride, of.stride, true, scores, blocking_.keys,
                         false});
      for_rows(count, [&](int row) {
        const int seen = std::clamp(visible(first + row) - key, 0, keys);
        float* p = scores + static_cast<std::ptrdiff_t>(row) * blocking_.keys;
        add_keys(p, seen, keys, key == 0, out + static_cast<std::ptrdiff_t>(row) * of.out_stride,
                 scratch.largest[static_cast<std::size_t>(row)], scratch.sum[static_cast<std::size_t>(row)]);
      });
      library_.multiply({count, kHeadSize, keys, scores, blocking_.keys,
                         of.v + static_cast<std::ptrdiff_t>(key) * of.stride, of.stride, false, out, of.out_stride,
                         key > 0});
    }
    for_rows(count, [&](int row) {
      scale_row(out + static_cast<std::ptrdiff_t>(row) * of.out_stride, kHeadSize,
                1 / scratch.sum[static_cast<std::size_t>(row)]);
    });
  }

  // One row of scores becomes exp(s − largest so far); what the row has gathered before is scaled to that (Milakov and
  // Gimelshein 2018, online softmax).
  static void add_keys(float* p, int seen, int keys, bool is_first, float* out, float& largest, float& sum) {
    std::memset(p + seen, 0, static_cast<std::size_t>(keys - seen) * sizeof(float));
    if (seen == 0) return;
    const float block_max = row_max(p, seen);
    const float now = is_first ? block_max : std::max(largest, block_max);
    const float added = exp_row(p, seen, kFactor, kFactor * now);
    if (is_first) {
      sum = added;
    } else {
      const float kept = std::exp2((largest - now) * kFactor);
      sum = sum * kept + added;
      if (kept != 1) scale_row(out, kHeadSize, kept);
    }
    largest = now;
  }

  // y [N, cols] = x [N, depth] · w, one piece of rows for each thread.
  void project(const float* x, int depth, const Floats& w, int cols, float* y) {
    const int n = job_.of.n, pieces = blocking_.own_threads ? 1 : workers_.threads();
    const auto piece = [&](int index, int) {
      const int first = index * n / pieces, count = (index + 1) * n / pieces - first;
      library_.multiply({count, cols, depth, x + static_cast<std::ptrdiff_t>(first) * depth, depth, w.data(), cols,
                         false, y + static_cast<std::ptrdiff_t>(first) * cols, cols, false});
    };
    if (pieces == 1) return piece(0, 0);
    workers_.for_each(pieces, piece);
  }

  // exp(s·scale) = 2^(s·kFactor)
  static constexpr float kFactor = static_cast<float>(std::numbers::log2e / 8);
  static_assert(kHeadSize == 64, "scale is 1/8");

  const Library& library_;
  Job job_;
  Blocking blocking_;
  Workers workers_;
  std::vector<Scratch> scratch_;
  Floats wqkv_, qkv_, concat_;  // [d_model, 3·H·d], [N, 3·H·d], [N, H·d]
};

inline Setup blocked_setup(const Library& library, const Blocking& blocking, int threads) {
  std::string name = std::to_string(blocking.rows) + " rows";
  if (blocking.keys != 0) name += " x " + std::to_string(blocking.keys) + " keys";
  name += blocking.own_threads ? ", its threads" : threads == 1 ? ", one thread" : ", blocks on threads";
  return {std::move(name), [&library, blocking, threads](const Job& job) -> std::function<void()> {
            Job with_threads = job;
            with_threads.threads = threads;
            const auto attention = std::make_shared<BlockedAttention>(library, with_threads, blocking);
            return [attention] { attention->run(); };
          }};
}

// The blockings that are tried for a job.
inline std::vector<Setup> blocked_setups(const Library& library, const Job& job) {
  const int n = job.of.n;
  std::vector<int> keys{n};
  if (job.of.work != Work::kKept) {
    for (const int count : {256, 512, 1024}) {
      if (count < n) keys.push_back(count);
    }
  }
  std::vector<int> rows{n};
  for (const int count : {256, 128, 64, 32, 512}) {
    if (count < n) rows.push_back(count);
  }
  std::vector<Setup> setups;
  for (const int row : rows) {
    for (const int key : keys) {
      if (static_cast<double>(row) * key > (1 << 24)) continue;  // 64 MiB of scratch a thread
      setups.push_back(blocked_setup(library, {row, key, false}, job.threads));
      if (job.threads == 1) continue;
      if (library.set_threads && row >= 128) setups.push_back(blocked_setup(library, {row, key, true}, job.threads));
      if (n <= 256) setups.push_back(blocked_setup(library, {row, key, false}, 1));
    }
  }
  return setups;
}

}  // namespace qkv::bench
