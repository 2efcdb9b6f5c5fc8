// What never changes a bit of the kernels' results: the division into calls and threads, which results are asked for,
// whether cells are computed one step at a time, and whether K and V were packed at once or row by row.
#include <doctest/doctest.h>

#include "core/base/thread_pool.h"
#include "tests/core/kernel_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

// Heads that take every path: plain and not, masks of each kind, exponents that rise late, rows with a base, NaN.
std::vector<Head> heads(Index keys = 700) {
  std::mt19937 random(1);
  std::vector<Head> result;
  result.emplace_back(61, keys, 16, 24, random);
  result.emplace_back(61, keys, 16, 24, random).mask.causal = true;
  Head& windowed = result.emplace_back(61, keys, 7, 3, random);
  windowed.mask.window = 130;
  windowed.mask.shift = windowed.scaling.shift = 300;
  windowed.sink = 1.5f;
  windowed.key_valid.assign(static_cast<std::size_t>(keys), 1);
  for (std::size_t j = 0; j < windowed.key_valid.size(); j += 3) windowed.key_valid[j] = 0;
  Head& rising = result.emplace_back(61, keys, 16, 24, random);
  rising.scaling.slope = -0.4f;  // what is far weighs more
  rising.scaling.softcap = 3;
  Head& wild = result.emplace_back(61, keys, 16, 24, random);
  wild.bias = Cells(61, keys, 5);
  wild.bias.fill(random, 3);
  for (Index j = 0; j < keys; ++j) {
    wild.bias(3, j) += 9000;
    wild.bias(17, j) -= 1e8f;
    wild.bias(30, j) += static_cast<float>(j);  // raises the exponent by more than float32 can hold
  }
  wild.bias(31, 40) = kKernelNan;
  wild.bias(32, 650) = kKernelInf;
  wild.bias(33, 650) = -kKernelInf;
  wild.mask.causal = true;
  wild.v(20, 3) = kKernelNan;
  wild.v(680, 5) = kKernelInf;
  return result;
}

void check_same(const Results& a, const Results& b) {
  CHECK(same_bits(a.scores, b.scores));
  CHECK(same_bits(a.weights, b.weights));
  CHECK(same_bits(a.out, b.out));
  CHECK(same_bits(a.rows, b.rows));
}

}  // namespace

TEST_CASE("results written past the caches, or made in their place, have the bits of those that are copied there") {
  on_every_target([] {
    for (const Index keys : {704, 17200}) {  // whole panels; of the larger a cache would keep little
      CAPTURE(keys);
      for (Head& head : heads(keys)) {
        const PackedKeyValues kv(head.k.view(), head.v.view());
        const HeadInput input = head.input(kv);
        Results copied(head);  // rows that do not begin with a vector
        attend(input, copied.all());
        for (const Index gap : {0, 16}) {
          CAPTURE(gap);
          Results results(head);
          results.weights = std::move(Cells(head.nq(), head.nk(), 0, gap).fill(77));
          results.scores = std::move(Cells(head.nq(), head.nk(), 0, gap).fill(77));
          attend(input, results.all());
          check_same(results, copied);
          CHECK(results.weights.is_intact());
          CHECK(results.scores.is_intact());
        }
      }
    }
  });
}

TEST_CASE("the division of rows into calls and among threads changes no bit") {
  on_every_target([] {
    for (Head& head : heads()) {
      const PackedKeyValues kv(head.k.view(), head.v.view());
      const HeadInput input = head.input(kv);
      Results whole(head);
      attend(input, whole.all());
      for (const Index count : {1, 5, 6, 13, 48}) {
        CAPTURE(count);
        Results parts(head, 3);
        const HeadOutput output = parts.all();
        KernelScratch scratch;
        for (Index row = 0; row < head.nq(); row += count) {
          attend_rows(input, row, std::min(count, head.nq() - row), output, scratch);
        }
        check_same(parts, whole);
      }
      for (const int threads : {1, 2, 5}) {
        CAPTURE(threads);
        Results parts(head, 5);
        const HeadOutput output = parts.all();
        ThreadPool pool(threads);
        std::vector<KernelScratch> scratches(static_cast<std::size_t>(threads));
        pool.run((head.nq() + 8) / 9, [&](std::ptrdiff_t task, int worker) {
          const Index row = task * 9;
          attend_rows(input, row, std::min<Index>(9, head.nq() - row), output,
                      scratches[static_cast<std::size_t>(worker)]);
        });
        check_same(parts, whole);
      }
    }
  });
}

TEST_CASE("which results are asked for changes no bit") {
  on_every_target([] {
    for (Head& head : heads()) {
      const PackedKeyValues kv(head.k.view(), head.v.view());
      const HeadInput input = head.input(kv);
      Results all(head), statistics(head), fused(head), weights(head), raw(head);
      attend(input, all.all());
      attend(input, {{}, {}, {}, statistics.rows});
      CHECK(same_bits(statistics.rows, all.rows));
      attend(input, {{}, {}, fused.out.block(), {}});
      CHECK(same_bits(fused.out, all.out));
      attend(input, {{}, weights.weights.block(), {}, {}});
      CHECK(same_bits(weights.weights, all.weights));
      attend(input, {{}, raw.weights.block(), {}, raw.rows, false});
      CHECK(same_bits(raw.rows, all.rows));
      for (Index i = 0; i < head.nq(); ++i) {
        const RowSoftmax& row = raw.rows[static_cast<std::size_t>(i)];
        if (std::isnan(row.sum)) continue;  // NaN already, and 0 where hidden
        for (Index j = 0; j < head.nk(); ++j) raw.weights(i, j) *= normalizer(row);
      }
      CHECK(same_bits(raw.weights, all.weights));
    }
  });
}

TEST_CASE("cells on demand are those of attend_rows to the last bit") {
  on_every_target([] {
    for (Head& head : heads()) {
      const PackedKeyValues kv(head.k.view(), head.v.view());
      const HeadInput input = head.input(kv);
      Results all(head);
      attend(input, all.all());
      for (const Rect& rect : {Rect{0, 0, 61, 700}, Rect{3, 250, 50, 300}, Rect{30, 1, 1, 699}, Rect{5, 43, 7, 1},
                               Rect{0, 40, 61, 1}, Rect{2, 650, 47, 1}}) {
        Cells cells(rect.rows, rect.cols, 7, rect.rows > 7 && rect.cols == 1 ? 0 : 3);  // a column may be without gaps
        score_cells(input, rect, cells.block());
        bool scores = true;
        for (Index r = 0; r < rect.rows; ++r) {
          for (Index c = 0; c < rect.cols; ++c) {
            const Index i = rect.row + r, j = rect.col + c;
            if (head.sees(i, j)) scores = scores && same_bits(cells(r, c), all.scores(i, j));
          }
        }
        CHECK(scores);
        scale_cells(input, rect, cells.block());
        weigh_cells(input, rect, std::span(all.rows).subspan(static_cast<std::size_t>(rect.row)), cells.block());
        bool weights = true;
        for (Index r = 0; r < rect.rows; ++r) {
          for (Index c = 0; c < rect.cols; ++c) {
            weights = weights && same_bits(cells(r, c), all.weights(rect.row + r, rect.col + c));
          }
        }
        CHECK(weights);
        CHECK(cells.is_intact());
      }
    }
  });
}

TEST_CASE("rows set later are as good as packed at once") {
  on_every_target([] {
    std::mt19937 random(3);
    Head head(9, 70, 13, 21, random);
    head.v(4, 2) = kKernelNan;
    head.v(4, 20) = kKernelInf;
    const PackedKeyValues fresh(head.k.view(), head.v.view());
    Head other(9, 70, 13, 21, random);
    other.v(4, 7) = -kKernelInf;  // of a row that is replaced
    other.v(5, 7) = -kKernelInf;
    PackedKeyValues kv(other.k.view(), other.v.view());
    for (Index key = 69; key >= 0; --key) {
      kv.set_key(key, head.k.row(key));
      kv.set_value(key, head.v.row(key));
    }
    Results a(head), b(head);
    attend(head.input(fresh), a.all());
    attend(head.input(kv), b.all());
    check_same(a, b);
  });
}

TEST_CASE("heads of a group read the same keys and values at once") {
  std::mt19937 random(4);
  Head first(50, 300, 16, 16, random), second(50, 300, 16, 16, random);
  const PackedKeyValues kv(first.k.view(), first.v.view());
  Head* const group[] = {&first, &second};
  Results alone[] = {Results(first), Results(second)}, together[] = {Results(first), Results(second)};
  HeadOutput outputs[] = {together[0].all(), together[1].all()};
  ThreadPool pool(2);
  KernelScratch scratches[2];
  pool.run(2, [&](std::ptrdiff_t task, int worker) {
    attend_rows(group[task]->input(kv), 0, 50, outputs[task], scratches[worker]);
  });
  for (int h = 0; h < 2; ++h) {
    attend(group[h]->input(kv), alone[h].all());
    check_same(alone[h], together[h]);
  }
}
