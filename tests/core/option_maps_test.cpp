// The pictures of the options as numbers: what they show of a small session, and that a large one is sampled.
#include "core/attention/option_maps.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/attention/position.h"
#include "core/attention/temperature.h"
#include "core/attention/update.h"
#include "tests/core/attention_support.h"

using namespace qkv;
using namespace qkv::test;

TEST_SUITE("option maps") {
  TEST_CASE("all of a short side, an even sample of a long one with both ends") {
    CHECK(sampled(1) == std::vector<Index>{0});
    CHECK(sampled(3) == std::vector<Index>{0, 1, 2});
    CHECK(sampled(64).back() == 63);
    for (const Index count : {65, 512, 131072}) {
      const std::vector<Index> places = sampled(count);
      REQUIRE(places.size() == 64);
      CHECK(places.front() == 0);
      CHECK(places.back() == count - 1);
      for (std::size_t i = 1; i < places.size(); ++i) CHECK(places[i] > places[i - 1]);
    }
    CHECK(sampled(100, 3) == std::vector<Index>{0, 49, 99});
  }

  TEST_CASE("the mask, of one token and of many") {
    CHECK(mask_map({}, 1, 1) == matrix({{1}}));
    CHECK(mask_map({.causal = true, .window = 2}, 3, 3) == matrix({{1, 0, 0}, {1, 1, 0}, {0, 1, 1}}));
    CHECK(mask_map({.causal = true, .align = CausalAlign::kTopLeft}, 2, 3) == matrix({{1, 0, 0}, {1, 1, 0}}));
    CHECK(mask_map({.key_valid = {1, 0}}, 2, 2) == matrix({{1, 0}, {1, 0}}));
    const Matrix large = mask_map({.causal = true}, 512, 512);
    REQUIRE(large.rows() == 64);
    for (Index r = 0; r < 64; ++r) {
      for (Index c = 0; c < 64; ++c) CHECK(large(r, c) == (c <= r ? 1.0f : 0.0f));
    }
  }

  TEST_CASE("what ALiBi and the bias add to the shown head") {
    const Shapes shapes = {.nq = 2, .nk = 3, .heads = 4, .kv_heads = 4, .d_k = 2, .d_v = 2};
    const Matrix bias = matrix({{1, 2, 3}, {4, 5, 6}});
    CHECK(added_map({}, shapes, 0) == Matrix::Zero(2, 3));
    CHECK(added_map({.bias = SharedMatrix(bias)}, shapes, 3) == bias);
    const auto slope = static_cast<float>(alibi_slope(1, 4));
    const Matrix alibi = -slope * matrix({{1, 0, 1}, {2, 1, 0}});
    CHECK(added_map({.alibi = true}, shapes, 1) == alibi);
    const AlibiCells cells({}, shapes, 1);
    Matrix whole(2, 3), part(1, 2), reduced(1, 2);
    cells.read({0, 0, 2, 3}, whole);
    CHECK(whole == alibi);
    cells.read({1, 1, 1, 2}, part);
    CHECK(part == alibi.block(1, 1, 1, 2));
    cells.reduce({0, 0, 2, 3}, 1, Reduction::kMax, reduced);
    CHECK(reduced == slope * matrix({{0, 0}}));
    CHECK(added_map({.alibi = true, .bias = SharedMatrix(bias)}, shapes, 1).isApprox(bias + alibi));
  }

  TEST_CASE("the cosines of a rope: a column for each pair, slower to the right") {
    const Matrix map = rope_map(Rope{100, RopeStyle::kHalf}, 3, 4);
    REQUIRE(map.rows() == 3);
    REQUIRE(map.cols() == 2);
    CHECK((map.row(0).array() == 1.0f).all());
    CHECK(map(1, 0) == static_cast<float>(std::cos(1.0)));
    CHECK(map(2, 1) == static_cast<float>(std::cos(0.2)));
    CHECK(rope_map(Rope{}, 512, 256).rows() == 64);
    CHECK(rope_map(Rope{}, 512, 256).cols() == 64);
  }

  TEST_CASE("the span of the scores after the scale, without what is no number") {
    Problem problem = random_problem(1, 1, 2, 2, 1, 1);
    auto& source = std::get<DirectSource>(problem.source);
    source.q[0] = matrix({{1}, {-2}});
    source.k[0] = matrix({{3}, {5}});
    problem.options.scale = 0.5f;
    const auto span = score_span(run(problem), 0);
    REQUIRE(span.has_value());
    CHECK(span->low == -5);
    CHECK(span->high == 2.5);
    source.k[0] = matrix({{3}, {kNan}});
    CHECK(score_span(run(problem), 0)->low == -3);
    source.k[0] = matrix({{kNan}, {kNan}});
    CHECK_FALSE(score_span(run(problem), 0).has_value());
  }

  TEST_CASE("the weights of a row under other options are those of a pass with them") {
    Problem problem = random_problem(2, 1, 5, 7, 4, 3);
    problem.options = {.rope = Rope{50, RopeStyle::kHalf}, .alibi = true, .sink = {0.5f, -1}};
    const Trace trace = run(problem);
    AttentionOptions other = problem.options;
    set_temperature(other, 0.4, 4);
    other.causal = true;
    other.softcap = 2.0f;
    Problem changed = problem;
    changed.options = other;
    const Trace want = run(changed);
    for (Index row = 0; row < 5; ++row) {
      const std::vector<double> weights = weights_with(trace, other, 1, row);
      for (Index j = 0; j < 7; ++j) {
        // From scores rounded to float32: 2^-24 of scores up to 10, divided by T·√d_k = 0.8.
        CHECK(std::abs(weights[static_cast<std::size_t>(j)] - double(want.heads[1].attn(row, j))) <= 1e-6);
      }
    }
  }

  TEST_CASE("on the float32 path ALiBi and B are found too, and stay through an edit") {
    Problem problem = random_problem(2, 2, 40, 40, 8, 4);
    problem.options = {.alibi = true, .bias = random_matrix(40, 40, 3)};
    Trace trace = forward(problem, {.arithmetic = Arithmetic::kFloat32}).value();
    const Matrix before = *trace.find({MatrixKind::kAlibi, 1});
    CHECK(before == *run(problem).find({MatrixKind::kAlibi, 1}));
    CHECK(before(3, 9) == -6 * 0x1p-8f);
    Problem edited = problem;
    source_of(edited).q[0].edit()(5, 1) += 1;
    UpdateReport report;
    trace = update(std::move(trace), edited, {.arithmetic = Arithmetic::kFloat32}, &report).value();
    CHECK_FALSE(report.full);
    REQUIRE(trace.find({MatrixKind::kAlibi, 1}) != nullptr);
    CHECK(*trace.find({MatrixKind::kAlibi, 1}) == before);
    CHECK(trace.find({MatrixKind::kBias, 0}) == &trace.problem.options.bias->get());
    // Another row of the bias is redone in both heads, whose scores show it.
    edited.options.bias->edit()(5, 1) += 2;
    const float score = trace.heads[0].scaled(5, 1);
    trace = update(std::move(trace), edited, {.arithmetic = Arithmetic::kFloat32}, &report).value();
    CHECK_FALSE(report.full);
    CHECK(report.redone_rows == 2);
    CHECK(trace.heads[0].scaled(5, 1) == doctest::Approx(score + 2).epsilon(1e-6));
    const auto cells = trace.source({MatrixKind::kAlibi, 0});
    Matrix cell(1, 1);
    cells->read({0, 39, 1, 1}, cell);
    CHECK(cell(0, 0) == -39 * 0x1p-4f);
  }
}
