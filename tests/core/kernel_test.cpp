// attend_rows against attention in float64, on every SIMD target: sizes, alignments, options, numbers without end.
#include <doctest/doctest.h>

#include "tests/core/kernel_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

void check(Head& head, Index offset = 0) {
  const PackedKeyValues kv(head.k.view(), head.v.view());
  Results results(head, offset);
  attend(head.input(kv), results.all());
  check_head(head, results);
}

// Every option on or off at random.
Head random_head(std::mt19937& random, Index most) {
  const auto below = [&](Index limit) { return static_cast<Index>(random() % static_cast<unsigned>(limit)); };
  const auto coin = [&] { return below(2) == 0; };
  const Index nq = 1 + below(most), nk = 1 + below(most);
  Head head(nq, nk, 1 + below(70), 1 + below(70), random, below(16));
  if (coin()) head.scaling.scale = below(2) ? -0.6f : 1.0f;
  if (coin()) head.scaling.softcap = below(2) ? 0.5f : 20.0f;
  if (coin()) head.scaling.slope = 0.25f;
  if (coin()) head.scaling.shift = head.mask.shift = 0;
  head.mask.causal = coin();
  if (coin()) head.mask.window = 1 + below(most / 2);
  if (coin()) {
    head.bias = Cells(nq, nk, below(16));
    head.bias.fill(random, 2);
    if (coin()) head.bias(below(nq), below(nk)) = -kKernelInf;
  }
  if (coin()) head.key_valid.resize(static_cast<std::size_t>(nk));
  for (auto& valid : head.key_valid) valid = below(4) > 0;
  if (coin()) head.sink = below(2) ? 3.0f : -20.0f;
  return head;
}

}  // namespace

TEST_CASE("attention on every target: each number of keys, at every alignment") {
  on_every_target([] {
    std::mt19937 random(1);
    for (Index n = 0; n <= 67; ++n) {
      CAPTURE(n);
      Head head(1 + n % 14, n, 1 + (n * 7) % 67, 1 + (n * 5) % 67, random, n % 16);
      check(head, (n * 3) % 16);
    }
    for (Index offset = 0; offset < 16; ++offset) {
      CAPTURE(offset);
      Head head(9, 37, 19, 21, random, offset);
      check(head, 15 - offset);
    }
    Head head(3, 1009, 64, 64, random);
    check(head);
  });
}

TEST_CASE("attention on every target: each size of head") {
  on_every_target([] {
    std::mt19937 random(2);
    for (Index d = 1; d <= 67; ++d) {
      CAPTURE(d);
      Head head(7, 33, d, 68 - d, random);
      check(head);
    }
    for (const Index d : {128, 256, 1009}) {
      CAPTURE(d);
      Head head(7, 33, d, d, random);
      check(head);
    }
  });
}

TEST_CASE("attention on every target: options combined at random") {
  on_every_target([] {
    std::mt19937 random(3);
    for (int i = 0; i < 150; ++i) {
      CAPTURE(i);
      Head head = random_head(random, i % 10 == 0 ? 600 : 70);
      check(head);
    }
  });
}

// Scores grow from block to block, so the exponent rises again and again; or they fall.
TEST_CASE("attention on every target: maxima met late, and scores far below them") {
  on_every_target([] {
    std::mt19937 random(4);
    for (const float step : {0.02f, 0.5f, -0.5f, 3.0f}) {
      CAPTURE(step);
      Head head(8, 1009, 8, 5, random);
      head.bias = Cells(8, 1009);
      for (Index i = 0; i < 8; ++i) {
        for (Index j = 0; j < 1009; ++j) head.bias(i, j) = step * static_cast<float>(j);
      }
      check(head);
    }
  });
}

// Beyond 4096 a row has a base: some rows only, so that the others of their block show no trace of it.
TEST_CASE("attention on every target: huge scores") {
  on_every_target([] {
    std::mt19937 random(5);
    for (const float shift : {5000.0f, -5000.0f, 1e6f, -1e30f, 3e37f}) {
      for (const bool sink : {false, true}) {
        CAPTURE(shift);
        CAPTURE(sink);
        Head head(9, 300, 8, 5, random);
        head.bias = Cells(9, 300);
        head.bias.fill(random);
        for (Index i = 0; i < 9; i += 2) {
          for (Index j = 0; j < 300; ++j) head.bias(i, j) += shift;
        }
        if (sink) head.sink = 1.0f;
        check(head);
      }
    }
  });
}

TEST_CASE("attention on every target: hidden values are never touched, visible ones spread") {
  on_every_target([] {
    std::mt19937 random(6);
    Head head(20, 300, 8, 5, random);
    head.mask.causal = true;
    head.mask.shift = head.scaling.shift = 100;
    head.key_valid.assign(300, 1);
    head.key_valid[3] = 0;
    head.v(3, 0) = kKernelNan;                                                 // hidden from all
    head.v(110, 1) = kKernelInf;                                               // visible from row 10 on
    head.v(115, 1) = -kKernelInf;                                              // and with this one NaN
    head.v(299, 2) = kKernelNan;                                               // beyond the diagonal
    for (Index c = 0; c < 8; ++c) head.k(3, c) = head.k(299, c) = kKernelNan;  // nor are hidden keys
    check(head);
    const PackedKeyValues kv(head.k.view(), head.v.view());
    Results results(head);
    attend(head.input(kv), results.all());
    CHECK(std::isfinite(results.out(9, 1)));
    CHECK(results.out(10, 1) == kKernelInf);
    CHECK(std::isnan(results.out(15, 1)));
    for (Index i = 0; i < 20; ++i) CHECK((std::isfinite(results.out(i, 0)) && std::isfinite(results.out(i, 2))));
  });
}

TEST_CASE("attention on every target: a visible NaN or +Inf makes its row NaN and no other") {
  on_every_target([] {
    for (const float bad : {kKernelNan, kKernelInf}) {
      for (const bool kept : {false, true}) {
        std::mt19937 random(7);
        Head head(20, 300, 8, 5, random);
        head.mask.causal = true;
        head.mask.shift = head.scaling.shift = 270;
        head.bias = Cells(20, 300);
        head.bias.fill(random);
        head.bias(4, 270) = bad;  // visible
        head.bias(7, 290) = bad;  // hidden
        const PackedKeyValues kv(head.k.view(), head.v.view());
        Results results(head);
        HeadOutput output = results.all();
        if (!kept) output.weights = {};
        attend(head.input(kv), output);
        for (Index i = 0; i < 20; ++i) {
          CAPTURE(i);
          const RowSoftmax& row = results.rows[static_cast<std::size_t>(i)];
          CHECK(std::isnan(row.sum) == (i == 4));
          CHECK(row.visible == 271 + i);
          for (Index c = 0; c < 5; ++c) CHECK(std::isnan(results.out(i, c)) == (i == 4));
          for (Index j = 0; kept && j < 300; ++j) {
            REQUIRE(std::isnan(results.weights(i, j)) == (i == 4 && head.sees(i, j)));
            if (!head.sees(i, j)) REQUIRE(same_bits(results.weights(i, j), 0.0f));
          }
        }
        CHECK(same_bits(results.rows[4].max, bad));
      }
    }
  });
}

TEST_CASE("rows without a visible key are dead") {
  on_every_target([] {
    std::mt19937 random(8);
    Head head(20, 10, 8, 5, random);
    head.mask.causal = true;
    head.mask.shift = head.scaling.shift = -10;  // the first ten rows see nothing
    head.sink = 2.0f;
    check(head);
    head.key_valid.assign(10, 0);
    check(head);
    Head no_keys(3, 0, 8, 5, random);
    check(no_keys);
  });
}

// Every visible score is -Inf: no weight is defined, as in float64.
TEST_CASE("a row of minus infinity alone is NaN, unless a sink takes it") {
  on_every_target([] {
    std::mt19937 random(9);
    Head head(2, 40, 8, 5, random);
    head.bias = Cells(2, 40);
    head.bias.fill(0.0f);
    std::fill_n(head.bias.row(1), 40, -kKernelInf);
    const PackedKeyValues kv(head.k.view(), head.v.view());
    Results results(head);
    attend(head.input(kv), results.all());
    CHECK(std::isfinite(results.out(0, 0)));
    CHECK(std::isnan(results.out(1, 0)));
    CHECK(std::isnan(results.rows[1].sum));
    CHECK(results.rows[1].max == -kKernelInf);
    head.sink = 0.5f;
    attend(head.input(kv), results.all());
    CHECK(results.out(1, 0) == 0);
    CHECK(results.weights(1, 39) == 0);
    CHECK(results.rows[1].sum == doctest::Approx(std::exp(0.5) * std::exp2(-results.rows[1].exponent)));
  });
}

// The sums of unnormalized products leave the range of float32, the weighted mean does not.
TEST_CASE("values near the largest float32") {
  on_every_target([] {
    std::mt19937 random(10);
    Head head(7, 600, 8, 20, random);
    for (Index j = 0; j < 600; ++j) {
      for (Index c = 0; c < 10; ++c) head.v(j, c) = 3e38f * (j % 3 == 0 ? -0.5f : 1.0f);
    }
    check(head);
  });
}
