// Temperature, the scale from the other side: where it matters and at its ends, against a float64 loop.
#include "core/attention/temperature.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/core/attention_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

Trace at_temperature(Problem problem, double t) {
  set_temperature(problem.options, t, std::get<DirectSource>(problem.source).q[0].cols());
  return run(problem);
}

// Row `row` of softmax(scores / (t·√d_k)) over visible keys, in float64 from the float64 scores.
std::vector<double> slow_row(const Problem& problem, double t, int head, Index row) {
  const auto& source = std::get<DirectSource>(problem.source);
  const Matrix &q = *source.q[static_cast<std::size_t>(head)], &k = *source.k[static_cast<std::size_t>(head)];
  std::vector<double> weights;
  double sum = 0;
  for (Index j = 0; j < k.rows(); ++j) {
    double score = 0;
    for (Index c = 0; c < q.cols(); ++c) score += static_cast<double>(q(row, c)) * static_cast<double>(k(j, c));
    weights.push_back(std::exp(score / (t * std::sqrt(static_cast<double>(q.cols())))));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

}  // namespace

TEST_SUITE("temperature") {
  TEST_CASE("the weights are softmax(scores / (T·√d_k)) at every temperature, not only at 1") {
    const Problem problem = random_problem(2, 2, 6, 9, 5, 3);
    for (const double t : {0.05, 0.3, 0.7, 1.0, 1.5, 4.0, 30.0}) {
      CAPTURE(t);
      const Trace trace = at_temperature(problem, t);
      for (int head = 0; head < 2; ++head) {
        double most = 0;  // |s|/(T·√d_k), by which a relative error of the scale moves an exponent
        for (Index n = 0; n < trace.heads[0].scaled->size(); ++n) {
          most = std::max(most, std::abs(double(trace.heads[static_cast<std::size_t>(head)].scaled->data()[n])));
        }
        for (Index row = 0; row < 6; ++row) {
          const std::vector<double> want = slow_row(problem, t, head, row);
          for (Index j = 0; j < 9; ++j) {
            const double got = trace.heads[static_cast<std::size_t>(head)].attn(row, j);
            // The scale is rounded to float32 (2^-24 of it, twice in a difference of two scores), so is the weight.
            const double bound = (4 * most + 1) * 0x1p-24 * want[static_cast<std::size_t>(j)];
            CHECK(std::abs(got - want[static_cast<std::size_t>(j)]) <= bound + 1e-45);
          }
        }
      }
    }
  }

  TEST_CASE("different temperatures give different weights: the scale is no factor that cancels") {
    const Problem problem = random_problem(1, 1, 4, 4, 3, 2);
    const Matrix cold = at_temperature(problem, 0.5).heads[0].attn, hot = at_temperature(problem, 2).heads[0].attn;
    CHECK((cold - hot).array().abs().maxCoeff() > 0.05f);
    for (Index row = 0; row < 4; ++row) CHECK(cold.row(row).maxCoeff() > hot.row(row).maxCoeff());
  }

  TEST_CASE("hot is uniform, by the spread of the scores over T") {
    const Problem problem = random_problem(1, 1, 5, 8, 4, 2);
    for (const double t : {10.0, 1e3, 1e6}) {
      const Trace trace = at_temperature(problem, t);
      const double spread = double(trace.heads[0].scores->maxCoeff() - trace.heads[0].scores->minCoeff()) / (t * 2);
      // Weights of scores within `spread` of each other lie within a factor exp(spread) of 1/Nk.
      const double bound = std::expm1(spread) / 8 + 0x1p-24;
      CHECK((trace.heads[0].attn->array().cast<double>() - 0.125).abs().maxCoeff() <= bound);
    }
    Problem uniform = problem;
    uniform.options.scale = 0.0f;
    CHECK((run(uniform).heads[0].attn->array() == 0.125f).all());
    CHECK(std::isinf(temperature(uniform.options, 4)));
  }

  TEST_CASE("cold is one-hot at the largest score, and ties share it equally") {
    Problem problem = random_problem(1, 1, 3, 4, 2, 2);
    auto& source = std::get<DirectSource>(problem.source);
    source.q[0] = matrix({{1, 0}, {0, 1}, {1, 1}});
    source.k[0] = matrix({{3, 1}, {1, 5}, {3, 5}, {0, 5}});
    const Matrix attn = at_temperature(problem, kLeastTemperature).heads[0].attn;
    // The next score is 1/(0.01·√2) = 70.7 lower: its weight is exp(−70.7) ≈ 2e-31.
    CHECK(attn(0, 0) == 0.5f);
    CHECK(attn(0, 2) == 0.5f);
    CHECK(attn(0, 1) < 1e-30f);
    for (const Index tied : {1, 2, 3}) CHECK(attn(1, tied) == static_cast<float>(1.0 / 3));
    CHECK(attn(2, 2) == 1.0f);
    CHECK(attn.row(2).sum() == 1.0f);
  }

  TEST_CASE("T = 1 is the default itself, and a temperature reads back") {
    AttentionOptions options = {.scale = 0.25f, .causal = true};
    set_temperature(options, 1, 7);
    CHECK(options == AttentionOptions{.causal = true});
    CHECK(temperature(options, 7) == 1);
    for (const double t : {0.01, 0.5, 3.0, 100.0}) {
      set_temperature(options, t, 7);
      REQUIRE(options.scale.has_value());
      CHECK(std::abs(temperature(options, 7) - t) <= 0x1p-23 * t);  // the scale's rounding to float32
    }
    CHECK(temperature({.scale = 1.0f}, 4) == 0.5);
    CHECK(temperature({.scale = -0.5f}, 4) == -1);
  }
}
