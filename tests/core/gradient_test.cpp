// Gradients: against central differences of a slow float64 forward pass, by hand, and by their invariants.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "core/attention/gradient.h"
#include "tests/core/reference_cases.h"
#include "tests/core/slow_gradient.h"

using namespace qkv;
using namespace qkv::test;
using test::matrix;

namespace {

Gradient gradient_of(const Problem& problem, const GradientTarget& target = {}) {
  Result<Gradient> result = gradient(problem, target);
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().message));
  return std::move(result).value();
}

GradientTarget cell_of(MatrixKind kind, int head, Index row, Index col) { return {MatrixCell{{kind, head}, row, col}}; }

// Holds the gradients of one problem and target to differences: along a random direction through all cells of each
// input, and for up to `most` cells of it each alone.
class Check {
 public:
  Check(const Problem& problem, const GradientTarget& target, Index most)
      : shapes_(check_shapes(problem).value()),
        differences_(problem, shapes_, target),
        gradient_(gradient_of(problem, target)),
        most_(most) {}

  void all() {
    for (const MatrixKind kind : kAllMatrixKinds) {
      for (std::size_t h = 0; h < differences_.inputs().of.heads(kind).size(); ++h) {
        const MatrixId id{kind, static_cast<int>(h)};
        CAPTURE(std::string(file_key(kind)));
        CAPTURE(h);
        input([id](DoubleInputs& in) -> MatrixD& { return in.of.at(id); }, gradient_.by.at(id),
              differences_.reach(kind));
      }
    }
    const MatrixD* bias = gradient_.by.find({MatrixKind::kBias});
    CHECK((bias != nullptr) == (differences_.inputs().bias.size() > 0));
    if (bias) {
      CAPTURE("bias");
      input([](DoubleInputs& in) -> MatrixD& { return in.bias; }, *bias, 1);
    }
    REQUIRE(static_cast<Index>(gradient_.sink.size()) == differences_.inputs().sink.size());
    if (gradient_.sink.empty()) return;
    CAPTURE("sink");
    const Eigen::Map<const MatrixD> sink(gradient_.sink.data(), 1, static_cast<Index>(gradient_.sink.size()));
    input([](DoubleInputs& in) -> MatrixD& { return in.sink; }, sink, 1);
  }

 private:
  void input(const std::function<MatrixD&(DoubleInputs&)>& access, const MatrixD& gradient, double reach) {
    DoubleInputs copy = differences_.inputs();
    REQUIRE(gradient.rows() == access(copy).rows());
    REQUIRE(gradient.cols() == access(copy).cols());
    const double step = differences_.step(reach), tolerance = differences_.tolerance(step);
    const MatrixD direction =
        MatrixD::NullaryExpr(gradient.rows(), gradient.cols(), [&] { return random_() % 2 == 0 ? 1.0 : -1.0; });
    const double along = (direction.array() * gradient.array()).sum();
    CHECK(std::abs(differences_.along(access, direction, step) - along) <= tolerance);
    for (Index n = 0; n < std::min(most_, gradient.size()); ++n) {
      const Index cell = gradient.size() <= most_ ? n : static_cast<Index>(random_()) % gradient.size();
      MatrixD one = MatrixD::Zero(gradient.rows(), gradient.cols());
      one.data()[cell] = 1;
      const double got = gradient.data()[cell], want = differences_.along(access, one, step);
      CHECK_MESSAGE(std::abs(got - want) <= tolerance, "cell ", cell, ": ", got, " ", want, " ± ", tolerance);
    }
  }

  Shapes shapes_;
  Differences differences_;
  Gradient gradient_;
  Index most_;
  std::mt19937 random_{17};
};

// Cells of every kind, chosen at random.
GradientTarget random_target(const Shapes& s, std::mt19937& random) {
  const auto below = [&](Index limit) { return static_cast<Index>(random() % static_cast<unsigned>(limit)); };
  const int head = static_cast<int>(below(s.heads));
  switch (below(8)) {
    case 0:
      return cell_of(MatrixKind::kConcat, 0, below(s.nq), below(s.heads * s.d_v));
    case 1:
      return cell_of(MatrixKind::kHeadsOut, head, below(s.nq), below(s.d_v));
    case 2:
      return cell_of(MatrixKind::kAttn, head, below(s.nq), below(s.nk));
    case 3:
      return cell_of(MatrixKind::kScaled, head, below(s.nq), below(s.nk));
    case 4:
      return cell_of(MatrixKind::kScores, head, below(s.nq), below(s.nk));
    case 5:
      if (s.d_out > 0) return cell_of(MatrixKind::kOut, 0, below(s.nq), below(s.d_out));
      break;
    default:
      break;
  }
  return {};
}

// Softmax does not see what a whole row of scaled scores is shifted by.
void check_row_sums(const Problem& problem, const Gradient& gradient) {
  const std::optional<MatrixCell>& cell = gradient.target.cell;
  const bool before_softmax = cell && (cell->id.kind == MatrixKind::kScaled || cell->id.kind == MatrixKind::kScores);
  if (!problem.options.sink.empty() || before_softmax) return;
  const auto count = static_cast<int>(gradient.by.heads(MatrixKind::kScaled).size());
  for (int head = 0; head < count; ++head) {
    const MatrixD& d_scaled = gradient.by.at({MatrixKind::kScaled, head});
    const MatrixD& d_attn = gradient.by.at({MatrixKind::kAttn, head});
    const auto keys = static_cast<double>(d_scaled.cols());
    for (Index i = 0; i < d_scaled.rows(); ++i) {
      // Σ A·(∂A − Σ A·∂A): the weights add up to 1 within Nk·eps, and so do the two sums.
      const double bound = 4 * keys * std::numeric_limits<double>::epsilon() * d_attn.row(i).cwiseAbs().maxCoeff();
      CHECK(std::abs(d_scaled.row(i).sum()) <= bound);
    }
  }
}

}  // namespace

TEST_SUITE("gradient") {
  TEST_CASE("one query, two keys: by hand") {
    // A = (1/2, 1/2), O = (3 + 7)/2; ∂O/∂S = (A₀·A₁·(3 − 7), −…), ∂O/∂V = A, ∂O/∂Q = Σ ∂S·K.
    const Problem problem = direct(matrix({{0}}), matrix({{1}, {2}}), matrix({{3}, {7}}));
    const Gradient one = gradient_of(problem, cell_of(MatrixKind::kHeadsOut, 0, 0, 0));
    CHECK(one.value == 5);
    CHECK(one.by.at({MatrixKind::kHeadsOut}) == MatrixD::Ones(1, 1));
    CHECK(one.by.at({MatrixKind::kV}) == MatrixD::Constant(2, 1, 0.5));
    CHECK(one.by.at({MatrixKind::kAttn}) == MatrixD{{3, 7}});
    CHECK(one.by.at({MatrixKind::kScaled}) == MatrixD{{-1, 1}});
    CHECK(one.by.at({MatrixKind::kScores}) == MatrixD{{-1, 1}});
    CHECK(one.by.at({MatrixKind::kQ}) == MatrixD{{1}});
    CHECK(one.by.at({MatrixKind::kK}) == MatrixD::Zero(2, 1));
    // Σ O² = 25: twice the output, 10, times as much.
    const Gradient squares = gradient_of(problem);
    CHECK(squares.value == 25);
    CHECK(squares.by.at({MatrixKind::kQ}) == MatrixD{{10}});
    CHECK(squares.by.at({MatrixKind::kConcat}) == MatrixD{{10}});
    CHECK(squares.by.find({MatrixKind::kOut}) == nullptr);
    CHECK(squares.by.find({MatrixKind::kKeep}) == nullptr);
  }

  TEST_CASE("every reference case agrees with central differences") {
    std::mt19937 random(3);
    for (const Case& c : kCases) {
      CAPTURE(c.name);
      Problem problem = problem_of(c);
      const Shapes s = check_shapes(problem).value();
      const Index cost = s.heads * s.nq * s.nk * (s.d_k + s.d_v);
      const Index most = std::clamp<Index>(4000000 / cost, 2, 200);
      Check(problem, {}, most).all();
      Check(problem, cell_of(MatrixKind::kHeadsOut, s.heads - 1, s.nq / 2, s.d_v / 2), most).all();
      Check(problem, random_target(s, random), most).all();
      check_row_sums(problem, gradient_of(problem));
    }
  }

  TEST_CASE("random combinations of options agree with central differences, with and without a W^O") {
    RandomProblems problems(23, 7);
    std::mt19937 random(5);
    for (int n = 0; n < 250; ++n) {
      CAPTURE(n);
      Problem problem = problems.next();
      const Shapes s = check_shapes(problem).value();
      if (n % 2 == 0) {
        problem.wo = random_matrix(s.heads * s.d_v, 1 + n % 3, 1000 + static_cast<unsigned>(n));
        if (n % 4 == 0) problem.bo = random_matrix(1, 1 + n % 3, 2000 + static_cast<unsigned>(n));
      }
      const GradientTarget target = random_target(check_shapes(problem).value(), random);
      Check(problem, target, 6).all();
      check_row_sums(problem, gradient_of(problem, target));
    }
  }

  TEST_CASE("a projected layer: X, its weights and biases agree with central differences") {
    Problem problem = projected_problem();
    Check(problem, {}, 100).all();
    Check(problem, cell_of(MatrixKind::kOut, 0, 4, 2), 100).all();
    problem.options = {
        .causal = true, .rope = Rope{10, RopeStyle::kInterleaved}, .softcap = 2.0f, .sink = {0, 1, 2, 3}};
    Check(problem, {}, 100).all();
    Check(problem, cell_of(MatrixKind::kAttn, 3, 4, 1), 100).all();
    projected_of(problem).bk.reset();
    CHECK(gradient_of(problem).by.find({MatrixKind::kBk}) == nullptr);
    CHECK(gradient_of(problem).by.find({MatrixKind::kBq}) != nullptr);
  }

  TEST_CASE("what is hidden has no gradient and spoils none, whatever it holds") {
    RandomProblems problems(31);
    for (int n = 0; n < 100; ++n) {
      CAPTURE(n);
      Problem problem = problems.next();
      const Shapes s = check_shapes(problem).value();
      problem.options.key_valid.assign(static_cast<std::size_t>(s.nk), 1);
      problem.options.key_valid[0] = 0;
      const Gradient clean = gradient_of(problem);
      const float poison = n % 2 == 0 ? kNan : kInf;
      for (auto* side : {&source_of(problem).k, &source_of(problem).v}) side->front().edit().row(0).setConstant(poison);
      const Gradient hidden = gradient_of(problem);
      for (const MatrixKind kind : {MatrixKind::kQ, MatrixKind::kK, MatrixKind::kV, MatrixKind::kScores,
                                    MatrixKind::kScaled, MatrixKind::kAttn, MatrixKind::kHeadsOut}) {
        for (std::size_t h = 0; h < clean.by.heads(kind).size(); ++h) {
          const MatrixD& want = clean.by.heads(kind)[h];
          const MatrixD& got = hidden.by.heads(kind)[h];
          REQUIRE(got.allFinite());
          // The same sums in another order.
          CHECK((got - want).cwiseAbs().maxCoeff() <= 1e-12 * (1 + want.cwiseAbs().maxCoeff()));
          if (kind == MatrixKind::kK || kind == MatrixKind::kV) CHECK((got.row(0).array() == 0).all());
          if (kind == MatrixKind::kScaled || kind == MatrixKind::kAttn) CHECK((got.col(0).array() == 0).all());
        }
      }
    }
  }

  TEST_CASE("a dead row has no gradient, and its NaN query spoils none") {
    Problem problem = random_problem(1, 1, 4, 4, 4, 3);
    problem.options = {.key_valid = {1, 0, 1, 1}, .window = 1, .sink = {2}};
    source_of(problem).q[0].edit().row(1).setConstant(kNan);
    const Gradient gradient = gradient_of(problem);
    for (const MatrixKind kind : {MatrixKind::kQ, MatrixKind::kScores, MatrixKind::kScaled, MatrixKind::kAttn}) {
      CHECK((gradient.by.at({kind}).row(1).array() == 0).all());
    }
    for (const MatrixKind kind : {MatrixKind::kQ, MatrixKind::kK, MatrixKind::kV})
      CHECK(gradient.by.at({kind}).allFinite());
    CHECK(gradient.sink[0] < 0);  // more for the sink is less of everything else
  }

  TEST_CASE("a cell does not depend on the NaN of another column or row, and does on its own") {
    Problem problem = random_problem(2, 1, 3, 5, 4, 2);
    problem.wo = random_matrix(4, 3, 9);
    problem.wo->edit()(1, 2) = kNan;
    source_of(problem).q[0].edit()(2, 0) = kNan;
    const Gradient clear = gradient_of(problem, cell_of(MatrixKind::kOut, 0, 0, 1));
    for (const MatrixKind kind : kAllMatrixKinds) {
      for (const MatrixD& m : clear.by.heads(kind)) CHECK(m.allFinite());
    }
    CHECK(std::isfinite(clear.value));
    const Gradient spoilt = gradient_of(problem, cell_of(MatrixKind::kOut, 0, 2, 1));
    CHECK(std::isnan(spoilt.value));
    CHECK(spoilt.by.at({MatrixKind::kQ, 0}).row(2).array().isNaN().any());
    CHECK(spoilt.by.at({MatrixKind::kQ, 0}).topRows(2).isZero(0));
  }

  TEST_CASE("targets that cannot be are refused by name, with what is allowed") {
    const Problem problem = random_problem(2, 1, 3, 4, 4, 2);
    const auto message = [&](const GradientTarget& target) {
      const Result<Gradient> result = gradient(problem, target);
      REQUIRE(!result.ok());
      CHECK(result.error().code == ErrorCode::kBadInput);
      return result.error().message;
    };
    CHECK(message(cell_of(MatrixKind::kOut, 0, 0, 0)) == "out is not there: this session has no wo");
    CHECK(message(cell_of(MatrixKind::kAttn, 2, 0, 0)) == "there is no head 2 of attn: it needs to be 0 to 1");
    CHECK(message(cell_of(MatrixKind::kAttn, 1, 0, 4)) ==
          "attn has no cell at row 0, column 4: rows are 0 to 2, columns 0 to 3");
    CHECK(message(cell_of(MatrixKind::kConcat, 0, -1, 0)) ==
          "concat has no cell at row -1, column 0: rows are 0 to 2, columns 0 to 3");
    CHECK(message(cell_of(MatrixKind::kK, 0, 0, 0)) ==
          "k cannot be the target of a gradient: it needs to be a cell of out, concat, heads_out, attn, scaled or "
          "scores");
    CHECK(!gradient(Problem{}).ok());
    const StopFlag stop = true;
    const Result<Gradient> stopped = gradient(problem, {}, &stop);
    REQUIRE(!stopped.ok());
    CHECK(stopped.error().code == ErrorCode::kCancelled);
  }

  TEST_CASE("the target in words") {
    const Shapes plain = {.heads = 1}, mixed = {.heads = 2, .d_out = 3};
    CHECK(target_words({}, plain, 1) == "Σ O²");
    CHECK(target_words({}, mixed, 1) == "Σ Out²");
    CHECK(target_words(cell_of(MatrixKind::kHeadsOut, 0, 1, 2), plain, 1) == "O[2, 3]");
    CHECK(target_words(cell_of(MatrixKind::kAttn, 1, 1, 2), mixed, 0) == "A[1, 2] of head 1");
  }
}
