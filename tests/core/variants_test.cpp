// The variants of attention: against a slow scalar float64 reference, by their invariants, and what is refused.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "core/attention/forward.h"
#include "core/attention/position.h"
#include "tests/core/slow_attention.h"

using namespace qkv;
using namespace qkv::test;

namespace {

Trace with(Problem problem, AttentionOptions options) {
  problem.options = std::move(options);
  return run(problem);
}

double ulp_at(double value) {
  const float magnitude = std::abs(static_cast<float>(value));
  return static_cast<double>(std::nextafter(magnitude, kInf)) - static_cast<double>(magnitude);
}

// The message of the error that check_shapes gives the problem with these options.
std::string objection(Problem problem, AttentionOptions options) {
  problem.options = std::move(options);
  return test::objection(problem);
}

// One ulp of the cell, or `floor` where cancellation leaves a cell so small that float64's own rounding shows.
bool agree(const Matrix& got, const MatrixD& want, double floor) {
  if (got.rows() != want.rows() || got.cols() != want.cols()) return false;
  for (Index n = 0; n < got.size(); ++n) {
    const double error = std::abs(static_cast<double>(got.data()[n]) - want.data()[n]);
    if (!(error <= std::max(ulp_at(want.data()[n]), floor))) return false;
  }
  return true;
}

void check_against_slow(const Problem& problem) {
  const Trace trace = run(problem);
  for (int h = 0; h < trace.shapes.heads; ++h) {
    const HeadTrace& head = trace.heads[static_cast<std::size_t>(h)];
    const Slow slow = slow_head(problem, trace.shapes, h);
    // Terms up to about 10 each, ten of them, and a factor of up to 2.5: their rounding stays below this.
    constexpr double kFloor = 1e-13;
    CHECK(agree(head.scores, slow.scores, kFloor));
    CHECK(agree(head.scaled, slow.scaled, kFloor));
    CHECK(agree(head.attn, slow.attn, 0));
    CHECK(agree(head.out, slow.out, kFloor));
    CHECK(trace.keep.get() == slow.keep.cast<float>());
    for (Index i = 0; i < trace.shapes.nq; ++i) {
      CHECK(expected_row_sum(trace, h, i) == doctest::Approx(slow.attn.row(i).sum()).epsilon(1e-12));
    }
  }
}

}  // namespace

TEST_SUITE("variants") {
  TEST_CASE("random combinations agree with the slow reference, to one float32 ulp of each cell") {
    RandomProblems problems(7), large(8, 200);  // more than 64 rows make several blocks
    for (int n = 0; n < 1500; ++n) {
      CAPTURE(n);
      check_against_slow(problems.next());
    }
    for (int n = 0; n < 40; ++n) {
      CAPTURE(n);
      check_against_slow(large.next());
    }
  }

  TEST_CASE("a window of all keys changes nothing, one of 1 leaves a query its own key") {
    const Problem problem = random_problem(2, 1, 9, 14, 6, 3);
    for (const bool causal : {false, true}) {
      const Trace plain = with(problem, {.causal = causal}), wide = with(problem, {.causal = causal, .window = 14});
      CHECK(plain.keep.get() == wide.keep.get());
      CHECK(plain.concat == wide.concat);
      CHECK(with(problem, {.causal = causal, .window = kMaxWindow}).concat == plain.concat);
      const Trace own = with(problem, {.causal = causal, .window = 1});
      CHECK(own.keep->sum() == 9);
      for (Index i = 0; i < 9; ++i) CHECK(own.heads[1].attn(i, i + 5) == 1);
    }
  }

  TEST_CASE("why a window hides a key") {
    const AttentionOptions both = {.key_valid = {1, 1, 1, 0, 1}, .window = 2};
    CHECK(mask_reason(both, 5, 5, 2, 0) == MaskReason::kWindow);
    CHECK(mask_reason(both, 5, 5, 2, 1) == MaskReason::kVisible);
    CHECK(mask_reason(both, 5, 5, 2, 3) == MaskReason::kPadding);
    CHECK(mask_reason(both, 5, 5, 2, 4) == MaskReason::kWindow);
    CHECK(mask_reason(both, 5, 5, 0, 3) == MaskReason::kWindow);
    const AttentionOptions causal = {.causal = true, .window = 2};
    CHECK(mask_reason(causal, 3, 5, 0, 3) == MaskReason::kCausal);
    CHECK(mask_reason(causal, 3, 5, 0, 2) == MaskReason::kVisible);
    CHECK(mask_reason(causal, 3, 5, 0, 0) == MaskReason::kWindow);
    CHECK(query_shift(causal, 3, 5) == 2);
    CHECK(query_shift({.align = CausalAlign::kTopLeft}, 3, 5) == 0);
    CHECK(mask_reason({.align = CausalAlign::kTopLeft, .window = 2}, 3, 5, 0, 2) == MaskReason::kWindow);
  }

  TEST_CASE("a very high softcap changes nothing, a very low one makes attention uniform, after the scale") {
    const Problem problem = random_problem(2, 2, 5, 8, 6, 3);
    const Trace plain = with(problem, {}), high = with(problem, {.softcap = 1e30f});
    for (std::size_t h = 0; h < 2; ++h) CHECK(agree(high.heads[h].attn, plain.heads[h].attn->cast<double>(), 0));
    const Trace low = with(problem, {.softcap = 1e-9f});
    CHECK((low.heads[0].attn->array() - 0.125f).abs().maxCoeff() <= 1e-8f);
    const Trace capped = with(problem, {.scale = 3.0f, .softcap = 0.5f});
    CHECK(capped.heads[0].scaled->array().abs().maxCoeff() <= 0.5f);
    const auto score = static_cast<double>(capped.heads[0].scores(1, 2));
    CHECK(static_cast<double>(capped.heads[0].scaled(1, 2)) ==
          doctest::Approx(0.5 * std::tanh(3 * score / 0.5)).epsilon(1e-6));
  }

  TEST_CASE("the slopes of ALiBi") {
    for (int h = 0; h < 8; ++h) CHECK(alibi_slope(h, 8) == std::ldexp(1.0, -(h + 1)));
    for (int h = 0; h < 16; ++h) CHECK(alibi_slope(h, 16) == std::exp2(-0.5 * (h + 1)));
    const double six[] = {0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125};
    for (int h = 0; h < 6; ++h) CHECK(alibi_slope(h, 6) == six[h]);
    CHECK(alibi_slope(0, 1) == 0.00390625);
  }

  TEST_CASE("ALiBi is the bias −slope·|i − j|, and no slope of 0 is no ALiBi") {
    const Problem problem = random_problem(1, 1, 4, 7, 6, 3);
    for (const CausalAlign align : {CausalAlign::kBottomRight, CausalAlign::kTopLeft}) {
      Matrix distance(4, 7);
      for (Index i = 0; i < 4; ++i) {
        for (Index j = 0; j < 7; ++j) {
          const Index position = align == CausalAlign::kBottomRight ? i + 3 : i;
          distance(i, j) = -static_cast<float>(std::abs(position - j));
        }
      }
      const Matrix sloped = distance * 0.00390625f;  // the slope of the only head
      const Trace alibi = with(problem, {.align = align, .alibi = true});
      CHECK(alibi.concat == with(problem, {.align = align, .bias = SharedMatrix(sloped)}).concat);
      const Trace zero = with(problem, {.align = align, .bias = SharedMatrix(Matrix::Zero(4, 7))});
      CHECK(zero.concat == with(problem, {}).concat);
    }
  }

  TEST_CASE("a bias of −∞ hides a key's weight, a constant one changes nothing") {
    const Problem problem = random_problem(2, 1, 3, 5, 4, 2);
    Matrix bias = Matrix::Zero(3, 5);
    bias.col(1).setConstant(-kInf);
    const Trace hidden = with(problem, {.bias = SharedMatrix(bias)});
    const Trace padded = with(problem, {.key_valid = {1, 0, 1, 1, 1}});
    CHECK(hidden.heads[0].attn.get() == padded.heads[0].attn.get());
    const Trace shifted = with(problem, {.bias = SharedMatrix(Matrix::Constant(3, 5, 2))});
    CHECK((*shifted.concat - *with(problem, {}).concat).array().abs().maxCoeff() <= 0x1p-23f);
  }

  TEST_CASE("a very negative sink changes nothing, a very large one takes all, others shrink a row alike") {
    const Problem problem = random_problem(2, 2, 5, 6, 4, 3);
    const Trace plain = with(problem, {});
    CHECK(with(problem, {.sink = {-1e30f, -1e30f}}).concat == plain.concat);
    const Trace all = with(problem, {.sink = {1e30f, -1e30f}});
    CHECK((all.heads[0].attn->array() == 0).all());
    CHECK(all.heads[0].rows[2].sink == 1);
    CHECK(expected_row_sum(all, 0, 2) == 0);
    CHECK(expected_row_sum(all, 1, 2) == 1);

    const Trace some = with(problem, {.sink = {0.5f, 3.0f}});
    for (std::size_t h = 0; h < 2; ++h) {
      for (Index i = 0; i < 5; ++i) {
        const RowStats& stats = some.heads[h].rows[static_cast<std::size_t>(i)];
        const double sum = some.heads[h].attn->row(i).cast<double>().sum();
        CHECK(sum + stats.sink == doctest::Approx(1).epsilon(1e-6));
        CHECK(expected_row_sum(some, static_cast<int>(h), i) == 1 - stats.sink);
        const Matrix scaled_back = some.heads[h].attn->row(i) / static_cast<float>(sum);
        CHECK((scaled_back - plain.heads[h].attn->row(i)).array().abs().maxCoeff() <= 1e-6f);
      }
    }
    // The larger of a visible score and the sink is the maximum, so that neither overflows.
    CHECK(some.heads[1].rows[0].max >= 3);
    CHECK(with(problem, {.sink = {3e38f, 3e38f}}).heads[0].out->allFinite());
  }

  TEST_CASE("a row whose window holds padding alone is dead, with a sink too") {
    const Problem problem = random_problem(1, 1, 4, 4, 4, 3);
    const Trace trace = with(problem, {.key_valid = {1, 0, 1, 1}, .window = 1, .sink = {2}});
    CHECK(find_warnings(trace).dead_rows == 1);
    CHECK((trace.heads[0].attn->row(1).array() == 0).all());
    CHECK((trace.heads[0].out->row(1).array() == 0).all());
    CHECK(trace.heads[0].rows[1].sink == 0);
    CHECK(trace.heads[0].rows[1].denominator == 0);
    CHECK(expected_row_sum(trace, 0, 1) == 0);
    CHECK(expected_row_sum(trace, 0, 0) < 1);
  }

  TEST_CASE("a hidden NaN stays hidden under every variant") {
    RandomProblems problems(11);
    for (int n = 0; n < 100; ++n) {
      Problem problem = problems.next();
      const Result<Shapes> shapes = check_shapes(problem);
      REQUIRE(shapes.ok());
      problem.options.key_valid.assign(static_cast<std::size_t>(shapes.value().nk), 1);
      problem.options.key_valid[0] = 0;
      const Trace clean = run(problem);
      for (auto* side : {&source_of(problem).k, &source_of(problem).v}) side->front().edit().row(0).setConstant(kNan);
      CHECK(run(problem).concat == clean.concat);
    }
  }

  TEST_CASE("rope: a score depends on contents and distance, lengths stay, position 0 is left alone") {
    for (const RopeStyle style : {RopeStyle::kHalf, RopeStyle::kInterleaved}) {
      Problem problem = random_problem(1, 1, 12, 12, 6, 3);
      for (auto* side : {&source_of(problem).q, &source_of(problem).k}) {
        Matrix& rows = side->front().edit();
        for (Index i = 1; i < 12; ++i) rows.row(i) = rows.row(0);
      }
      const Matrix scores = with(problem, {.rope = Rope{100, style}}).heads[0].scores;
      for (Index i = 1; i < 12; ++i) {
        for (Index j = 1; j < 12; ++j) CHECK(std::abs(scores(i, j) - scores(i - 1, j - 1)) <= 4e-6f);
      }
      CHECK(scores(0, 0) == with(problem, {}).heads[0].scores(0, 0));
      CHECK(scores(3, 0) != scores(0, 0));

      MatrixD rows = random_matrix(5, 8, 3).cast<double>();
      rows(0, 1) = static_cast<double>(kNan);
      const MatrixD before = rows;
      rotate_rows(rows, {10000, style}, 0);
      CHECK(rows(0, 0) == before(0, 0));
      CHECK(rows.row(0).array().isNaN().count() == 1);
      for (Index i = 1; i < 5; ++i) CHECK(rows.row(i).norm() == doctest::Approx(before.row(i).norm()).epsilon(1e-14));
      MatrixD later = before.bottomRows(2);
      rotate_rows(later, {10000, style}, 3);
      CHECK(later == rows.bottomRows(2));
    }
  }

  TEST_CASE("rope: the styles differ by an order of columns, and the trace holds q and k as they are edited") {
    Problem half = random_problem(1, 1, 7, 9, 8, 3);
    Problem interleaved = half;
    for (auto* side : {&source_of(interleaved).q, &source_of(interleaved).k}) {
      const Matrix old = side->front().get();
      for (Index i = 0; i < 4; ++i) {
        side->front().edit().col(2 * i) = old.col(i);
        side->front().edit().col(2 * i + 1) = old.col(i + 4);
      }
    }
    const Trace a = with(half, {.rope = Rope{10000, RopeStyle::kHalf}});
    const Trace b = with(interleaved, {.rope = Rope{10000, RopeStyle::kInterleaved}});
    CHECK((*a.heads[0].scores - *b.heads[0].scores).array().abs().maxCoeff() <= 0x1p-20f);
    CHECK(a.q[0].same_storage(source_of(half).q[0]));
    CHECK(a.k[0].same_storage(source_of(half).k[0]));
  }
}

TEST_CASE("options that cannot be are refused by name, with what is allowed") {
  const Problem problem = random_problem(2, 1, 3, 4, 4, 2);
  for (const float scale : {kInf, -kInf}) {
    const std::string message = objection(problem, {.scale = scale});
    CHECK(message.ends_with("inf: it needs to be a finite number, or absent for 1/√d_k"));
  }
  CHECK(objection(problem, {.scale = 0.0f}).empty());  // uniform attention, as at an infinite temperature
  CHECK(objection(problem, {.scale = kNan}) == "scale is NaN: it needs to be a finite number, or absent for 1/√d_k");
  for (const float cap : {0.0f, -1.0f, kInf, kNan}) {
    const std::string message = objection(problem, {.softcap = cap});
    CHECK(message.starts_with("softcap is "));
    CHECK(message.ends_with(": it needs to be a finite number above 0, or absent for no cap"));
  }
  for (const Index window : {Index{0}, Index{-3}, kMaxWindow + 1}) {
    CHECK(objection(problem, {.window = window}) ==
          "window is " + std::to_string(window) +
              ": it needs to be a whole number from 1 to 16777216, or absent for no window");
  }
  for (const float base : {1.0f, 0.0f, -10.0f, kInf, kNan}) {
    const std::string message = objection(problem, {.rope = Rope{base}});
    CHECK(message.starts_with("rope.base is "));
    CHECK(message.ends_with(": it needs to be a finite number above 1"));
  }
  CHECK(objection(random_problem(2, 1, 3, 4, 5, 2), {.rope = Rope{}}) ==
        "rope turns pairs of columns but d_k is 5: it needs an even d_k");
  CHECK(objection(problem, {.bias = SharedMatrix(Matrix(4, 3))}) ==
        "bias is 4×3 but there are 3 queries and 4 keys: it needs to be 3×4");
  CHECK(objection(problem, {.sink = {1}}) ==
        "sink has 1 number but there are 2 heads: it needs one number for each head");
  CHECK(objection(random_problem(1, 1, 3, 4, 4, 2), {.sink = {1, 2}}) ==
        "sink has 2 numbers but there is 1 head: it needs one number for each head");
  CHECK(objection(problem, {.sink = {1, -kInf}}) == "sink[1] is -inf: it needs to be a finite number");
  CHECK(objection(problem, {.rope = Rope{1.5f},
                            .softcap = 1e-3f,
                            .alibi = true,
                            .bias = SharedMatrix(Matrix::Constant(3, 4, kNan)),
                            .window = 1,
                            .sink = {0, 0}}) == "");
}

TEST_CASE("options are equal by their numbers") {
  const AttentionOptions a = {.rope = Rope{}, .bias = SharedMatrix(Matrix::Constant(2, 2, kNan)), .sink = {1}};
  AttentionOptions b = a;
  b.bias = SharedMatrix(Matrix::Constant(2, 2, kNan));
  CHECK(a == b);
  b.bias->edit()(1, 1) = 0;
  CHECK(a != b);
  b = a;
  b.bias = SharedMatrix(Matrix::Constant(1, 4, kNan));
  CHECK(a != b);
  b = a;
  b.rope->style = RopeStyle::kInterleaved;
  CHECK(a != b);
}
