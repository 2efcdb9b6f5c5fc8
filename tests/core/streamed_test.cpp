// A streamed head against the same head with its matrices held.
#include <doctest/doctest.h>

#include "core/attention/overview.h"
#include "tests/core/streamed_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

constexpr MatrixKind kCells[] = {MatrixKind::kScores, MatrixKind::kScaled, MatrixKind::kAttn};
constexpr MatrixKind kAll[] = {MatrixKind::kScores, MatrixKind::kScaled, MatrixKind::kAttn, MatrixKind::kKeep,
                               MatrixKind::kHeadsOut};

// Every cell, O and the rows' softmax bit for bit; reductions at all levels by a loop over the held cells.
void check_head(const Problem& problem, int head, Index overview_blocks) {
  const Held want = held(problem, head);
  const auto got = streamed(problem, head, true, overview_blocks);
  ThreadPool pool(2);
  REQUIRE(got->compute(pool));
  CHECK(got->progress() == 1);
  CHECK(got->has_overview());
  for (const MatrixKind kind : kAll) {
    CAPTURE(file_key(kind));
    CHECK(same_bits(read_all(*streamed_source(got, kind)), want.of(kind)));
  }
  CHECK(same_bits(*got->out(), want.out));
  for (const MatrixKind kind : kCells) {
    CAPTURE(file_key(kind));
    const auto source = streamed_source(got, kind);
    for (int level = 0; level < 9; ++level) {
      check_reductions(want.of(kind), want.keep, level, reduced(*source, level, Reduction::kMean),
                       reduced(*source, level, Reduction::kMax));
    }
  }
}

Problem masked(Index nq, Index nk, Index d, unsigned seed, AttentionOptions options) {
  Problem problem = random_problem(1, 1, nq, nk, d, d, seed);
  problem.options = std::move(options);
  return problem;
}

}  // namespace

TEST_SUITE("streamed head") {
  TEST_CASE("cells are those of the held path bit for bit, whatever the options") {
    RandomProblems small(3), middling(4, 90);
    for (int n = 0; n < 120; ++n) {
      CAPTURE(n);
      const Problem problem = n % 4 == 0 ? middling.next() : small.next();
      const Shapes shapes = check_shapes(problem).value();
      check_head(problem, n % shapes.heads, 1 + n % 7);
    }
  }

  TEST_CASE("larger heads: no mask, causal, a window, padding, not square") {
    std::vector<std::uint8_t> valid(700, 1);
    for (std::size_t j = 0; j < valid.size(); j += 3) valid[j] = 0;
    check_head(masked(300, 300, 7, 1, {}), 0, 16);
    check_head(masked(700, 700, 5, 2, {.causal = true}), 0, 100);
    check_head(masked(130, 700, 9, 3, {.causal = true, .key_valid = valid}), 0, 11);
    check_head(masked(700, 130, 4, 4, {.causal = true, .window = 60}), 0, 22);
    check_head(masked(513, 511, 3, 5, {.softcap = 2.0f, .alibi = true, .window = 97}), 0, 64);
  }

  TEST_CASE("a rectangle reads like its part of the whole") {
    const Problem problem = masked(203, 211, 6, 6, {.causal = true});
    const Held want = held(problem, 0);
    const auto head = streamed(problem, 0, true, 8);
    ThreadPool pool(1);
    REQUIRE(head->compute(pool));
    for (const Rect& rect : {Rect{0, 0, 1, 1}, Rect{202, 210, 1, 1}, Rect{17, 100, 150, 33}, Rect{5, 9, 0, 4}}) {
      for (const MatrixKind kind : kCells) {
        Matrix into = Matrix::Constant(rect.rows + 2, rect.cols + 3, 7);  // with a stride of its own
        streamed_source(head, kind)->read(rect, into.block(1, 1, rect.rows, rect.cols));
        CHECK(same_bits(into.block(1, 1, rect.rows, rect.cols),
                        want.of(kind).block(rect.row, rect.col, rect.rows, rect.cols)));
        CHECK(into.row(0).isConstant(7));
        CHECK(into.col(rect.cols + 1).isConstant(7));
      }
    }
  }

  TEST_CASE("reductions of rectangles that lie across the overview's blocks") {
    const Problem problem = masked(120, 150, 4, 7, {.causal = true});
    const Held want = held(problem, 0);
    const auto head = streamed(problem, 0, false, 10);
    ThreadPool pool(1);
    REQUIRE(head->compute(pool));
    REQUIRE(head->overview_level() == 4);
    const Rect rect = {8, 40, 70, 90};
    for (const int level : {0, 2, 4, 5}) {
      const Index side = Index{1} << level;
      for (const MatrixKind kind : kCells) {
        Matrix mean((rect.rows + side - 1) / side, (rect.cols + side - 1) / side), max = mean;
        streamed_source(head, kind)->reduce(rect, level, Reduction::kMean, mean);
        streamed_source(head, kind)->reduce(rect, level, Reduction::kMax, max);
        check_reductions(want.of(kind).block(rect.row, rect.col, rect.rows, rect.cols),
                         want.keep.block(rect.row, rect.col, rect.rows, rect.cols), level, mean, max);
      }
    }
  }

  TEST_CASE("what is hidden is told by keep") {
    const Problem problem = masked(64, 64, 4, 8, {.causal = true});
    const auto head = streamed(problem, 0, false, 8);
    ThreadPool pool(1);
    REQUIRE(head->compute(pool));
    const Matrix largest = reduced(*streamed_source(head, MatrixKind::kKeep), 3, Reduction::kMax);
    const Matrix share = reduced(*streamed_source(head, MatrixKind::kKeep), 3, Reduction::kMean);
    const Matrix mean = reduced(*streamed_source(head, MatrixKind::kAttn), 3, Reduction::kMean);
    for (Index r = 0; r < 8; ++r) {
      for (Index c = 0; c < 8; ++c) {
        CHECK(largest(r, c) == (c <= r ? 1.0f : 0.0f));
        CHECK(share(r, c) == (c < r ? 1.0f : c == r ? 36.0f / 64 : 0.0f));
        CHECK(std::isnan(mean(r, c)) == (c > r));
      }
    }
  }

  TEST_CASE("NaN and infinity are left out or kept as a loop over the cells would") {
    Problem problem = masked(70, 90, 5, 9, {});
    auto& source = std::get<DirectSource>(problem.source);
    source.q[0].edit()(3, 1) = kNan;   // a row of NaN
    source.k[0].edit()(33, 2) = kNan;  // a column of NaN: every row of weights
    source.v[0].edit()(40, 0) = kInf;
    check_head(problem, 0, 9);
    problem.options.key_valid.assign(90, 1);
    problem.options.key_valid[33] = 0;  // that column hidden
    check_head(problem, 0, 9);
    source.k[0].edit()(50, 3) = kInf;  // scores of ±∞
    check_head(problem, 0, 9);
    Matrix bias = Matrix::Zero(70, 90);
    bias.topRightCorner(30, 60).setConstant(-kInf);
    problem.options.bias = SharedMatrix(bias);
    check_head(problem, 0, 9);
    source.q[0].edit().setConstant(kNan);  // no value at all
    check_head(problem, 0, 9);
  }

  TEST_CASE("scores so large that their sums overflow still have a mean") {
    Problem problem = masked(40, 40, 1, 10, {.scale = 1e-38f});
    auto& source = std::get<DirectSource>(problem.source);
    source.q[0].edit().setConstant(1e19f);
    source.k[0].edit().setConstant(1e19f);
    check_head(problem, 0, 5);
  }

  TEST_CASE("dead rows are hidden, with weights and O 0") {
    const Problem problem = masked(90, 20, 4, 11, {.causal = true, .sink = {0.5f}});
    const auto head = streamed(problem, 0, true, 9);
    ThreadPool pool(2);
    REQUIRE(head->compute(pool));
    CHECK(head->row(0).visible == 0);
    CHECK(head->row(0).sum == 0);
    CHECK(head->row(89).visible == 20);
    CHECK(read_all(*streamed_source(head, MatrixKind::kAttn)).topRows(70).isZero(0));
    CHECK(head->out()->topRows(70).isZero(0));
    CHECK(reduced(*streamed_source(head, MatrixKind::kAttn), 4, Reduction::kMean).topRows(4).array().isNaN().all());
    check_head(problem, 0, 9);
  }

  TEST_CASE("the extent is that of the visible cells") {
    Problem problem = masked(77, 60, 4, 12, {.causal = true});
    std::get<DirectSource>(problem.source).q[0].edit()(60, 0) = kInf;
    const Held want = held(problem, 0);
    const auto head = streamed(problem, 0, false, 7);
    ThreadPool pool(1);
    CHECK(head->extent(MatrixKind::kScores).low > head->extent(MatrixKind::kScores).high);
    REQUIRE(head->compute(pool));
    for (const MatrixKind kind : kCells) {
      float low = kInf, high = -kInf;
      for (Index r = 0; r < 77; ++r) {
        for (Index c = 0; c < 60; ++c) {
          const float value = want.of(kind)(r, c);
          if (want.keep(r, c) == 0 || !std::isfinite(value)) continue;
          low = std::min(low, value);
          high = std::max(high, value);
        }
      }
      CHECK(head->extent(kind).low == (kind == MatrixKind::kAttn ? 0 : low));
      CHECK(head->extent(kind).high == high);
    }
  }

  TEST_CASE("memory grows with N, not with its square") {
    const auto bytes = [](Index n) {
      const auto head = streamed(masked(n, n, 16, 13, {.causal = true}), 0, true, 64);
      return static_cast<double>(head->bytes() + 2 * head->bytes_per_worker());
    };
    // Q, K, V and O take 16 floats a token each, the softmax 33 bytes; the rest is for 64 × 64 blocks.
    const double per_token = (bytes(8192) - bytes(4096)) / 4096;
    CHECK(per_token >= 4 * 16 * 4 + 33);
    CHECK(per_token <= 4 * 16 * 4 + 33 + 48 * 4);
    // The limit of issue-sized heads, in bytes: 131,072 tokens of 64.
    CHECK(per_token / (4 * 16 * 4 + 33) * (4 * 64 * 4 + 33) * 131072 < 512e6);
  }
}

TEST_SUITE("overview") {
  TEST_CASE("levels are as coarse as they must be") {
    CHECK(overview_level(1, 1, 1024) == 0);
    CHECK(overview_level(1024, 3, 1024) == 0);
    CHECK(overview_level(3, 1025, 1024) == 1);
    CHECK(overview_level(131072, 131072, 1024) == 7);
    CHECK(overview_level(131073, 5, 1024) == 8);
  }

  TEST_CASE("coarser levels weigh blocks by their cells and pass over those without") {
    Overview overview(3, 6, 1);
    REQUIRE(overview.block_rows() == 2);
    REQUIRE(overview.block_cols() == 3);
    Matrix block(1, 2);
    overview.reduce({0, 0, 3, 6}, 2, Reduction::kMean, block);
    CHECK(block.array().isNaN().all());
    overview.set_row(0, std::vector<float>{1, 2, 9}, std::vector<float>{4, 5, 9}, std::vector<float>{4, 2, 0});
    overview.set_row(1, std::vector<float>{-1, 5, 3}, std::vector<float>{8, 1, 3}, std::vector<float>{2, 0, 2});
    overview.reduce({0, 0, 3, 6}, 2, Reduction::kMean, block);
    CHECK(block(0, 0) == doctest::Approx((4.0 * 1 + 2 * 2 - 2) / 8).epsilon(1e-6));
    CHECK(block(0, 1) == 3);
    overview.reduce({0, 0, 3, 6}, 2, Reduction::kMax, block);
    CHECK(block(0, 0) == 8);
    CHECK(block(0, 1) == 3);
    // Level 3 is one block; so is any beyond.
    Matrix one(1, 1);
    for (const int level : {3, 4, 30}) {
      REQUIRE(overview.has({0, 0, 3, 6}, level));
      overview.reduce({0, 0, 3, 6}, level, Reduction::kMean, one);
      CHECK(one(0, 0) == doctest::Approx((4.0 * 1 + 2 * 2 - 2 + 6) / 10).epsilon(1e-6));
    }
    CHECK(!overview.has({0, 0, 3, 6}, 0));
    CHECK(!overview.has({1, 0, 2, 6}, 1));
    CHECK(!overview.has({0, 0, 1, 6}, 1));
    CHECK(overview.has({2, 4, 1, 2}, 1));
  }
}

TEST_SUITE("visible keys") {
  TEST_CASE("counts agree with the mask written out") {
    RandomProblems problems(5, 40);
    for (int n = 0; n < 200; ++n) {
      const Problem problem = problems.next();
      const Shapes s = check_shapes(problem).value();
      const KeepMatrix keep = keep_matrix(problem.options, s.nq, s.nk);
      const VisibleKeys visible(kernel_mask(problem.options, s), s.nq, s.nk);
      const Index width = 1 + n % 9, top = n % s.nq, left = n % s.nk;
      const Rect rect = {top, left, s.nq - top, s.nk - left};
      std::vector<Index> counts(static_cast<std::size_t>((rect.cols + width - 1) / width));
      visible.count_blocks(rect, width, counts);
      Index sum = 0;
      for (std::size_t b = 0; b < counts.size(); ++b) {
        const Index first = left + static_cast<Index>(b) * width, cols = std::min(width, s.nk - first);
        CHECK(counts[b] == keep.block(top, first, rect.rows, cols).cast<Index>().sum());
        sum += counts[b];
      }
      CHECK(visible.hides(rect) == (sum == 0));
      CHECK(visible.sees(top, left) == (keep(top, left) != 0));
      CHECK(visible.count(top, left, s.nk) == keep.row(top).tail(rect.cols).cast<Index>().sum());
    }
  }
}

TEST_SUITE("summaries of key blocks") {
  TEST_CASE("sampled queries are computed as in the whole head, to the bit") {
    RandomProblems problems(6, 60);
    for (int n = 0; n < 100; ++n) {
      CAPTURE(n);
      const Problem problem = problems.next();
      const Shapes s = check_shapes(problem).value();
      const Held want = held(problem, 0);
      const auto kv = packed(problem, s, 0);
      const Matrix q = positioned(*std::get<DirectSource>(problem.source).q[0], problem.options.rope).cast<float>();
      const HeadInput input = head_input(q, *kv, problem.options, s, 0);
      const Index step = 1 + n % 5, first = n % std::min(step, s.nq), count = (s.nq - first + step - 1) / step;
      Matrix weights(count, s.nk);
      std::vector<RowSoftmax> rows(static_cast<std::size_t>(count));
      HeadOutput output;
      output.weights = block_of(weights);
      output.rows = rows;
      KernelScratch scratch;
      attend_rows(sample_rows(input, first, count, step), 0, count, output, scratch);
      for (Index r = 0; r < count; ++r) {
        CHECK(same_bits(weights.row(r), want.attn.row(first + r * step)));
        const RowSoftmax &a = rows[static_cast<std::size_t>(r)],
                         &b = want.rows[static_cast<std::size_t>(first + r * step)];
        CHECK(a.visible == b.visible);
        CHECK(a.max == b.max);
        CHECK(a.base == b.base);
        CHECK(a.exponent == b.exponent);
        CHECK(a.sum == b.sum);
      }
    }
  }
}
