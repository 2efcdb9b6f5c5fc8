// What the window tells of a trace: read off the float32 path row by row, and kept through edits.
#include <doctest/doctest.h>

#include "app/engine/digest.h"
#include "tests/core/slow_attention.h"

using namespace qkv;
using namespace qkv::test;

namespace {

Trace pass(const Problem& problem, Arithmetic arithmetic) {
  Result<Trace> trace = forward(problem, {.arithmetic = arithmetic});
  REQUIRE(trace.ok());
  return std::move(trace).value();
}

bool near(double got, double want, double tolerance) {
  return std::isnan(want) ? std::isnan(got) : std::abs(got - want) <= tolerance * (1 + std::abs(want));
}

void check_near(const FiniteExtent& got, const FiniteExtent& want, double tolerance) {
  // How many there are depends on what is read twice.
  CHECK((got.count > 0) == (want.count > 0));
  CHECK((got.nan > 0) == (want.nan > 0));
  CHECK((got.infinite > 0) == (want.infinite > 0));
  CHECK(std::abs(got.low - want.low) <= tolerance * (1 + std::abs(want.low)));
  CHECK(std::abs(got.high - want.high) <= tolerance * (1 + std::abs(want.high)));
}

void check_near(const HeadDigest& got, const HeadDigest& want, double tolerance) {
  CHECK(near(got.stats.entropy, want.stats.entropy, tolerance));
  CHECK(near(got.stats.previous_token, want.stats.previous_token, tolerance));
  CHECK(near(got.stats.first_token, want.stats.first_token, tolerance));
  CHECK(near(got.stats.diagonal, want.stats.diagonal, tolerance));
  CHECK(got.stats.max_entropy == doctest::Approx(want.stats.max_entropy));
  check_near(got.weights, want.weights, tolerance);
  CHECK(std::abs(got.weights.positive - want.weights.positive) <= tolerance);
  check_near(got.scores, want.scores, tolerance);
  check_near(got.values, want.values, tolerance);
  check_near(got.outputs, want.outputs, tolerance);
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool same(const FiniteExtent& a, const FiniteExtent& b) {
  return a.low == b.low && a.high == b.high && a.count == b.count && a.nan == b.nan && a.infinite == b.infinite &&
         a.positive == b.positive;
}

// What an edit kept and read again is what reading all of it tells.
void check_same(const TraceDigest& got, const TraceDigest& want) {
  for (std::size_t h = 0; h < want.heads.size(); ++h) {
    CAPTURE(h);
    const HeadDigest &a = got.heads[h], &b = want.heads[h];
    CHECK(same(a.stats.entropy, b.stats.entropy));
    CHECK(same(a.stats.max_entropy, b.stats.max_entropy));
    CHECK(same(a.stats.previous_token, b.stats.previous_token));
    CHECK(same(a.stats.first_token, b.stats.first_token));
    CHECK(same(a.stats.diagonal, b.stats.diagonal));
    CHECK(same(a.weights, b.weights));
    CHECK(same(a.scores, b.scores));
    CHECK(same(a.values, b.values));
    CHECK(same(a.outputs, b.outputs));
    CHECK(a.worst_row_sum == b.worst_row_sum);
  }
  CHECK(got.hidden == want.hidden);
  CHECK(got.warnings.dead_rows == want.warnings.dead_rows);
  CHECK(got.warnings.nan_inputs == want.warnings.nan_inputs);
}

}  // namespace

TEST_CASE("the float32 path is told as the float64 one, whatever the options") {
  RandomProblems problems(31, 90);
  for (int n = 0; n < 80; ++n) {
    CAPTURE(n);
    Problem problem = problems.next();
    auto& source = std::get<DirectSource>(problem.source);
    // Scores of a few units: float32 knows weights of large ones less well, whoever reads them.
    for (SharedMatrix& q : source.q) q.edit() *= 0.3F;
    if (n % 4 == 1) source.k[0].edit()(0, 0) = kNan;
    if (n % 4 == 2) source.q[0].edit().row(0).setConstant(kInf);
    if (n % 4 == 3 && problem.options.bias) problem.options.bias->edit()(0, 0) = -kInf;
    const TraceDigest exact = digest(pass(problem, Arithmetic::kFloat64));
    const Trace trace = pass(problem, Arithmetic::kFloat32);
    const TraceDigest got = digest(trace);
    check_near(extent_of(got, ScaleGroup::kConcat), finite_extent(*trace.concat), 0);
    for (std::size_t h = 0; h < exact.heads.size(); ++h) check_near(got.heads[h], exact.heads[h], 2e-4);
    CHECK(got.hidden == exact.hidden);
    CHECK(got.worst_row_sum <= 1e-5);
    CHECK(got.warnings.nan_inputs == exact.warnings.nan_inputs);
  }
}

TEST_CASE("after edits, what was kept and what was read again are what all rows tell") {
  RandomProblems problems(32, 60);
  std::mt19937 random(33);
  const auto below = [&random](Index limit) { return static_cast<Index>(random() % static_cast<unsigned>(limit)); };
  const auto change = [&](SharedMatrix& matrix) {
    const float value = below(12) == 0 ? kNan : static_cast<float>(below(9)) - 4;
    matrix.edit()(below(matrix.rows()), below(matrix.cols())) = value;
  };
  ThreadPool pool(2);
  for (int n = 0; n < 25; ++n) {
    Problem problem = problems.next();
    auto& source = std::get<DirectSource>(problem.source);
    AttentionOptions& o = problem.options;
    Trace trace = pass(problem, Arithmetic::kFloat32);
    const Shapes shapes = trace.shapes;
    TraceDigest told = digest(trace, &pool);
    for (int step = 0; step < 30; ++step) {
      CAPTURE(n);
      CAPTURE(step);
      switch (below(8)) {
        case 0:
          change(source.k[0]);
          break;
        case 1:
          change(source.v[0]);
          break;
        case 2:
          if (!o.bias) o.bias = Matrix(Matrix::Zero(shapes.nq, shapes.nk));
          change(*o.bias);
          break;
        case 3:
          if (o.key_valid.empty()) o.key_valid.assign(static_cast<std::size_t>(shapes.nk), 1);
          o.key_valid[static_cast<std::size_t>(below(shapes.nk))] ^= 1;
          break;
        case 4:
          o.sink.assign(static_cast<std::size_t>(shapes.heads), static_cast<float>(below(5)) - 2);
          break;
        case 5:
          o.align = o.align == CausalAlign::kTopLeft ? CausalAlign::kBottomRight : CausalAlign::kTopLeft;
          break;
        case 6:
          o.window = o.window ? std::nullopt : std::optional<Index>(1 + below(shapes.nk));
          break;
        default:
          change(source.q[static_cast<std::size_t>(below(shapes.heads))]);
      }
      UpdateReport report;
      Result<Trace> edited =
          update(std::move(trace), problem, {.arithmetic = Arithmetic::kFloat32, .pool = &pool}, &report);
      REQUIRE(edited.ok());
      trace = std::move(edited).value();
      told = digest(trace, &pool, &told, report);
      check_same(told, digest(trace));
    }
  }
}
