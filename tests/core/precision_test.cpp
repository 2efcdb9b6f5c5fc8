// Number formats: every step in float64 against slow definitions, in the others by hand and by error bounds.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "core/attention/precision.h"
#include "tests/core/slow_gradient.h"

using namespace qkv;
using namespace qkv::test;
using test::matrix;

namespace {

constexpr NumberFormat kSmallFormats[] = {NumberFormat::kFloat32, NumberFormat::kBfloat16, NumberFormat::kFloat16};

Precision precision_of(NumberFormat format, const Problem& problem) {
  Result<Precision> result = precision(format, problem);
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().message));
  return std::move(result).value();
}

bool near(const MatrixD& got, const MatrixD& want, double tolerance) {
  return got.rows() == want.rows() && got.cols() == want.cols() &&
         (got.size() == 0 || (got - want).cwiseAbs().maxCoeff() <= tolerance);
}

// Half a unit in the last place, relative to the number: 2^-24, 2^-8, 2^-11.
double unit(NumberFormat format) { return ulp_in(format, 1) / 2; }

void check_against_slow(const Problem& problem) {
  const Result<MatrixTable<MatrixD>> steps = steps_in_float64(problem);
  REQUIRE(steps.ok());
  const MatrixTable<MatrixD>& table = steps.value();
  const Shapes s = check_shapes(problem).value();
  const SlowRun slow = slow_run(double_inputs(problem), problem.options, s);
  // Sums of up to a few dozen terms of up to about 30: float64's rounding stays below this.
  constexpr double kTolerance = 1e-12;
  for (int h = 0; h < s.heads; ++h) {
    const Slow& head = slow.heads[static_cast<std::size_t>(h)];
    CHECK(near(table.at({MatrixKind::kScores, h}), head.scores, kTolerance));
    CHECK(near(table.at({MatrixKind::kScaled, h}), head.scaled, kTolerance));
    CHECK(near(table.at({MatrixKind::kAttn, h}), head.attn, kTolerance));
    CHECK(near(table.at({MatrixKind::kHeadsOut, h}), head.out, kTolerance));
  }
  CHECK(near(table.at({MatrixKind::kConcat}), slow.concat, kTolerance));
  CHECK((table.find({MatrixKind::kOut}) != nullptr) == problem.wo.has_value());
  if (problem.wo) CHECK(near(table.at({MatrixKind::kOut}), slow.out, 10 * kTolerance));
}

// What the format may do to one head's scores and weights: cell by cell, from the definition in steps.h.
void check_bounds(NumberFormat format, const Problem& problem, const Precision& p) {
  const Shapes s = check_shapes(problem).value();
  const double u = unit(format), single = 0x1p-24;
  const double tiny = ulp_in(format, 0);  // what a subnormal is off by
  for (int h = 0; h < s.heads; ++h) {
    const MatrixD& q = p.exact.at({MatrixKind::kQ, h});
    const MatrixD& k = p.exact.at({MatrixKind::kK, kv_head_of(s, h)});
    const MatrixD sizes = q.cwiseAbs() * k.cwiseAbs().transpose();
    const MatrixD off = p.difference.at({MatrixKind::kScores, h}).cast<double>().cwiseAbs();
    // Two rounded factors, a float32 sum of d_k products, and one rounding of the sum: 3u of Σ|q||k| and d_k·2^-24;
    // a tenth more for their products and for sums that are not exact.
    const double bound = 1.1 * (3 * u + static_cast<double>(s.d_k + 1) * single);
    CHECK((off.array() <= bound * sizes.array() + 8 * tiny * (1 + q.cwiseAbs().sum() + k.cwiseAbs().sum())).all());
    // Weights are stored in the format and lie between 0 and 1, rows add up to 1 within a rounding of each weight.
    const Matrix& attn = p.rounded.at({MatrixKind::kAttn, h});
    CHECK((attn.array() >= 0).all());
    CHECK((attn.array() <= 1).all());
    for (Index i = 0; i < s.nq; ++i) {
      const double sum = attn.row(i).cast<double>().sum();
      CHECK(std::abs(sum - 1) <= u + static_cast<double>(s.nk) * (single + tiny));
    }
  }
}

}  // namespace

TEST_SUITE("precision") {
  TEST_CASE("float64: every step agrees with the slow reference, and with the trace to one float32 rounding") {
    RandomProblems problems(41);
    for (int n = 0; n < 400; ++n) {
      CAPTURE(n);
      Problem problem = problems.next();
      const Shapes s = check_shapes(problem).value();
      if (n % 3 == 0) problem.wo = random_matrix(s.heads * s.d_v, 3, static_cast<unsigned>(n));
      check_against_slow(problem);
    }
    check_against_slow(projected_problem());

    const Problem problem = random_problem(4, 2, 9, 11, 6, 5);
    const Trace trace = run(problem);
    const MatrixTable<MatrixD> steps = steps_in_float64(problem).value();
    for (const MatrixKind kind : kAllMatrixKinds) {
      CHECK((steps.find({kind}) != nullptr) == (trace.find({kind, 0}) != nullptr && kind != MatrixKind::kKeep));
      for (std::size_t h = 0; h < steps.heads(kind).size(); ++h) {
        const Matrix& stored = *trace.find({kind, static_cast<int>(h)});
        const MatrixD off = (stored.cast<double>() - steps.heads(kind)[h]).cwiseAbs();
        // Half a float32 unit of the cell, and what float64 leaves where the cell is small by cancellation.
        CHECK((off.array() <= 0x1p-24 * stored.cast<double>().array().abs() + 1e-13).all());
      }
    }
  }

  TEST_CASE("one query and two keys in bfloat16, by hand") {
    // Q = 1, K = (1, 2), scale 1/√3: bfloat16 has 8 bits, a unit of 2^-8 in [1/2, 1) and of 2^-7 in [1, 2).
    Problem problem = direct(matrix({{1}}), matrix({{1}, {2}}), matrix({{1}, {3.01f}}), {.scale = 0.57735026f});
    const Precision p = precision_of(NumberFormat::kBfloat16, problem);
    CHECK(p.rounded.at({MatrixKind::kScores}) == matrix({{1, 2}}));
    CHECK(p.rounded.at({MatrixKind::kScaled}) == matrix({{148 * 0x1p-8f, 148 * 0x1p-7f}}));  // 147.8 units
    // exp(−0.578125) = 0.56095: weights 0.359365… and 0.640634…, 184.0 units of 2^-9 and 164.0 of 2^-8.
    CHECK(p.rounded.at({MatrixKind::kAttn}) == matrix({{184 * 0x1p-9f, 164 * 0x1p-8f}}));
    CHECK(p.rounded.at({MatrixKind::kV}) == matrix({{1}, {193 * 0x1p-6f}}));  // 3.01 is 192.64 units of 2^-6
    // 0.359375 + 0.640625·3.015625 = 2.291259…: 146.6 units of 2^-6.
    CHECK(p.rounded.at({MatrixKind::kHeadsOut}) == matrix({{147 * 0x1p-6f}}));
    CHECK(p.difference.at({MatrixKind::kScores}) == matrix({{0, 0}}));
    const PrecisionSummary* v = summary_of(p, {MatrixKind::kV, 0});
    REQUIRE(v != nullptr);
    const double off = 193 * 0x1p-6 - static_cast<double>(3.01f);
    CHECK(v->largest == off);
    CHECK(v->largest_ulps == off / 0x1p-6);
    CHECK(v->largest_at == MatrixCell{{MatrixKind::kV, 0}, 1, 0});
    CHECK(v->infinite == 0);
  }

  TEST_CASE("random problems stay within what the format's roundings allow, and nothing has more digits") {
    for (const NumberFormat format : kSmallFormats) {
      CAPTURE(std::string(format_name(format)));
      for (unsigned seed = 1; seed < 40; ++seed) {
        Problem problem = random_problem(2, 1, 1 + seed % 7, 1 + seed % 11, 1 + seed % 33, 3, seed * 100);
        const Precision p = precision_of(format, problem);
        check_bounds(format, problem, p);
        for (const PrecisionSummary& summary : p.summary) CHECK(summary.infinite + summary.nan == 0);
      }
      RandomProblems problems(43);
      for (int n = 0; n < 100; ++n) {
        Problem problem = problems.next();
        const Shapes s = check_shapes(problem).value();
        problem.wo = random_matrix(s.heads * s.d_v, 2, static_cast<unsigned>(n));
        const Precision p = precision_of(format, problem);
        for (const MatrixKind kind : kAllMatrixKinds) {
          for (const Matrix& m : p.rounded.heads(kind)) {
            CHECK(m == Matrix(m.unaryExpr([&](float value) { return round_to(format, value); })));
          }
        }
      }
    }
  }

  TEST_CASE("more bits are nearer: float32 before float16 before bfloat16, on a problem in everyone's range") {
    Problem problem = projected_problem();
    problem.options = {.causal = true, .rope = Rope{}, .softcap = 20.0f, .alibi = true};
    double largest[3];
    for (std::size_t n = 0; n < 3; ++n) {
      const Precision p = precision_of(kSmallFormats[n], problem);
      CHECK(p.exact.at({MatrixKind::kQ, 1}) != p.rounded.at({MatrixKind::kQ, 1}).cast<double>());
      largest[n] = summary_of(p, {MatrixKind::kOut, 0})->largest;
    }
    // float16's last place is 2^13 of float32's, bfloat16's 2^3 of float16's. The largest of 35 differences is luck
    // within a few times: a factor of 8 and of 4.
    CHECK(largest[0] > 0);
    CHECK(largest[2] > 0x1p10 * largest[0]);
    CHECK(largest[1] > 2 * largest[2]);
  }

  TEST_CASE("a score beyond float16's range is infinite there, and counted with the NaN that comes of it") {
    const Problem problem = direct(matrix({{300}, {1}}), matrix({{300}, {1}}), matrix({{1}, {2}}), {.scale = 1.0f});
    const Precision half = precision_of(NumberFormat::kFloat16, problem);
    CHECK(std::isinf(half.rounded.at({MatrixKind::kScores})(0, 0)));
    CHECK(std::isinf(half.difference.at({MatrixKind::kScores})(0, 0)));
    CHECK(std::isnan(half.rounded.at({MatrixKind::kAttn})(0, 0)));
    CHECK(std::isnan(half.rounded.at({MatrixKind::kHeadsOut})(0, 0)));
    CHECK(half.rounded.at({MatrixKind::kHeadsOut})(1, 0) == 1);
    CHECK(summary_of(half, {MatrixKind::kScores, 0})->infinite == 1);
    CHECK(summary_of(half, {MatrixKind::kScores, 0})->nan == 0);
    CHECK(summary_of(half, {MatrixKind::kScores, 0})->largest == 0);
    CHECK(summary_of(half, {MatrixKind::kAttn, 0})->nan == 2);
    CHECK(summary_of(half, {MatrixKind::kHeadsOut, 0})->nan == 1);
    const Precision wide = precision_of(NumberFormat::kBfloat16, problem);
    for (const PrecisionSummary& summary : wide.summary) CHECK(summary.infinite + summary.nan == 0);
    // The float64 side has 65504 in range and 65520 beyond, as the format does.
    const Problem edge = direct(matrix({{1, 0}}), matrix({{65504, 0}, {65519, 0}}), matrix({{1}, {2}}));
    CHECK(summary_of(precision_of(NumberFormat::kFloat16, edge), {MatrixKind::kK, 0})->infinite == 0);
    const Problem beyond = direct(matrix({{1, 0}}), matrix({{65520, 0}, {1, 0}}), matrix({{1}, {2}}));
    CHECK(summary_of(precision_of(NumberFormat::kFloat16, beyond), {MatrixKind::kK, 0})->infinite == 1);
  }

  TEST_CASE("hidden NaN stays hidden in every format, and NaN or Inf that float64 has too is no difference") {
    RandomProblems problems(47);
    for (int n = 0; n < 60; ++n) {
      Problem problem = problems.next();
      const Shapes s = check_shapes(problem).value();
      problem.options.key_valid.assign(static_cast<std::size_t>(s.nk), 1);
      problem.options.key_valid[0] = 0;
      for (const NumberFormat format : kSmallFormats) {
        const Matrix clean = precision_of(format, problem).rounded.at({MatrixKind::kConcat});
        Problem poisoned = problem;
        for (auto* side : {&source_of(poisoned).k, &source_of(poisoned).v})
          side->front().edit().row(0).setConstant(kNan);
        CHECK(precision_of(format, poisoned).rounded.at({MatrixKind::kConcat}) == clean);
      }
    }
    const Problem infinite = direct(matrix({{1}}), matrix({{kInf}, {1}}), matrix({{1}, {kNan}}));
    const Precision p = precision_of(NumberFormat::kBfloat16, infinite);
    CHECK(p.difference.at({MatrixKind::kK}) == matrix({{0}, {0}}));
    CHECK(std::isnan(p.difference.at({MatrixKind::kV})(1, 0)));
    for (const PrecisionSummary& summary : p.summary) CHECK(summary.infinite + summary.nan == 0);
  }

  TEST_CASE("units in the last place, and names") {
    CHECK(ulp_in(NumberFormat::kFloat16, 1) == 0x1p-10);
    CHECK(ulp_in(NumberFormat::kFloat16, -1023.9) == 0.5);
    CHECK(ulp_in(NumberFormat::kFloat16, 1e-6) == 0x1p-24);
    CHECK(ulp_in(NumberFormat::kBfloat16, 3) == 0x1p-6);
    CHECK(ulp_in(NumberFormat::kFloat32, 0) == 0x1p-149);
    CHECK(ulp_in(NumberFormat::kFloat64, 1) == std::numeric_limits<double>::epsilon());
    CHECK(std::isnan(ulp_in(NumberFormat::kFloat32, HUGE_VAL)));
    for (const NumberFormat format : kAllNumberFormats) CHECK(format_from_name(format_name(format)) == format);
    CHECK(!format_from_name("half"));
    const StopFlag stop = true;
    const Result<Precision> stopped = precision(NumberFormat::kFloat32, random_problem(1, 1, 2, 2, 2, 2), &stop);
    REQUIRE(!stopped.ok());
    CHECK(stopped.error().code == ErrorCode::kCancelled);
    CHECK(!precision(NumberFormat::kFloat32, Problem{}).ok());
  }
}
