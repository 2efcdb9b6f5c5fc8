#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "core/attention/explain.h"
#include "tests/core/attention_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

// Causal, with a padding key: every reason to hide a key occurs.
Problem masked_projected_problem() {
  return {.source = ProjectedSource{.x = random_matrix(6, 10, 1),
                                    .wq = random_matrix(10, 12, 2),
                                    .wk = random_matrix(10, 6, 3),
                                    .wv = random_matrix(10, 4, 4),
                                    .bq = random_matrix(1, 12, 5),
                                    .bk = random_matrix(1, 6, 6),
                                    .bv = random_matrix(1, 4, 7),
                                    .heads = 4,
                                    .kv_heads = 2},
          .wo = random_matrix(8, 5, 8),
          .bo = random_matrix(1, 5, 9),
          .options = {.causal = true, .key_valid = {1, 1, 0, 1, 1, 1}}};
}

// More queries than keys, so that the first two queries see nothing.
Problem direct_problem() {
  return {.source =
              DirectSource{
                  {random_matrix(6, 3, 1), random_matrix(6, 3, 2)}, {random_matrix(4, 3, 3)}, {random_matrix(4, 2, 4)}},
          .options = {.scale = 0.7f, .causal = true}};
}

// Every option that acts on scores and rows, with more keys than queries.
Problem variants_problem(RopeStyle style) {
  return {.source = DirectSource{{random_matrix(4, 6, 1), random_matrix(4, 6, 2), random_matrix(4, 6, 5)},
                                 {random_matrix(7, 6, 3)},
                                 {random_matrix(7, 2, 4)}},
          .wo = random_matrix(6, 3, 8),
          .options = {.scale = 0.7f,
                      .causal = true,
                      .key_valid = {1, 1, 1, 0, 1, 1, 1},
                      .rope = Rope{50, style},
                      .softcap = 2.5f,
                      .alibi = true,
                      .bias = SharedMatrix(random_matrix(4, 7, 6)),
                      .window = 4,
                      .sink = {0.5f, -1, 4}}};
}

Explanation cell(const Trace& trace, MatrixId id, Index row, Index col) {
  std::optional<Explanation> result = explain(trace, id, row, col);
  REQUIRE(result.has_value());
  return *std::move(result);
}

bool within_one_ulp(double value, float stored) {
  const float next = std::nextafter(std::abs(stored), std::numeric_limits<float>::infinity());
  return std::abs(value - static_cast<double>(stored)) <= static_cast<double>(next - std::abs(stored));
}

double total(const Explanation& e) {
  double sum = e.bias.value_or(0.0);
  for (const Term& term : e.terms) sum += term.product();
  for (const HeadPart& part : e.parts) sum += part.value;
  return sum;
}

// Sums of the same float64 numbers in another order: at most some twenty terms of magnitude 10.
void check_equal_sums(double a, double b) { CHECK(std::abs(a - b) <= 20 * 10 * 0x1p-52); }

int heads_of(const Trace& trace, MatrixKind kind) {
  int count = 1;
  if (is_per_head(kind)) {
    while (trace.find({kind, count})) ++count;
  }
  return count;
}

void check_members(const Trace& trace, const Explanation& e) {
  const Shapes& s = trace.shapes;
  const bool projected = s.d_model > 0;
  switch (e.id.kind) {
    case MatrixKind::kQ:
    case MatrixKind::kK:
    case MatrixKind::kV:
      CHECK(static_cast<Index>(e.terms.size()) == s.d_model);
      CHECK(e.bias.has_value() == projected);
      if (projected) check_equal_sums(total(e), e.value);
      break;
    case MatrixKind::kScores:
      CHECK(static_cast<Index>(e.terms.size()) == s.d_k);
      check_equal_sums(total(e), e.value);
      break;
    case MatrixKind::kScaled:
      CHECK(e.scores * e.scale == e.after_scale);
      CHECK(e.after_softcap + e.alibi + e.bias_value == e.value);
      break;
    case MatrixKind::kAttn: {
      double sum = 0;
      for (const SoftmaxTerm& term : e.softmax) sum += term.weight;
      CHECK(static_cast<Index>(e.softmax.size()) == s.nk);
      check_equal_sums(sum, e.dead_row ? 0 : 1 - e.sink_weight);
      break;
    }
    case MatrixKind::kConcat:
      CHECK(e.head * s.d_v + e.column == e.col);
      check_equal_sums(total(e), e.value);
      break;
    case MatrixKind::kHeadsOut:
      check_equal_sums(total(e), e.value);
      break;
    case MatrixKind::kOut:
      CHECK(e.parts.size() == static_cast<std::size_t>(s.heads));
      check_equal_sums(total(e), e.value);
      break;
    default:
      CHECK((e.terms.empty() && e.parts.empty() && e.softmax.empty() && !e.bias));
      break;
  }
}

}  // namespace

TEST_CASE("every cell of every matrix is explained, to one float32 ulp of what the trace holds") {
  for (const Problem& problem : {masked_projected_problem(), direct_problem(), variants_problem(RopeStyle::kHalf),
                                 variants_problem(RopeStyle::kInterleaved)}) {
    const Trace trace = run(problem);
    for (const MatrixKind kind : kAllMatrixKinds) {
      if (!trace.find({kind, 0})) continue;
      CAPTURE(file_key(kind));
      for (int head = 0; head < heads_of(trace, kind); ++head) {
        const Matrix& matrix = *trace.find({kind, head});
        for (Index row = 0; row < matrix.rows(); ++row) {
          for (Index col = 0; col < matrix.cols(); ++col) {
            const Explanation e = cell(trace, {kind, head}, row, col);
            CHECK(e.id == MatrixId{kind, head});
            CHECK(e.row == row);
            CHECK(e.col == col);
            CHECK(e.stored == matrix(row, col));
            CHECK_MESSAGE(within_one_ulp(e.value, e.stored), e.value, " ", e.stored);
            check_members(trace, e);
          }
        }
      }
    }
  }
}

TEST_CASE("there is no cell outside a matrix, nor in one that the computation lacks") {
  const Trace trace = run(direct_problem());
  CHECK(!explain(trace, {MatrixKind::kAttn, 0}, 6, 0));
  CHECK(!explain(trace, {MatrixKind::kAttn, 0}, 0, 4));
  CHECK(!explain(trace, {MatrixKind::kAttn, 0}, -1, 0));
  CHECK(!explain(trace, {MatrixKind::kAttn, 0}, 0, -1));
  CHECK(!explain(trace, {MatrixKind::kAttn, 2}, 0, 0));
  CHECK(!explain(trace, {MatrixKind::kK, 1}, 0, 0));
  CHECK(!explain(trace, {MatrixKind::kOut, 0}, 0, 0));
  CHECK(!explain(trace, {MatrixKind::kX, 0}, 0, 0));
  CHECK(explain_softmax_row(trace, 2, 0).empty());
  CHECK(explain_softmax_row(trace, 0, 6).empty());
  CHECK(explain_softmax_row(trace, -1, 0).empty());
}

TEST_CASE("the terms are the factors that the matrices show") {
  const Trace trace = run(masked_projected_problem());
  const auto& source = std::get<ProjectedSource>(trace.problem.source);

  const Explanation k = cell(trace, {MatrixKind::kK, 1}, 4, 2);  // columns 3 … 5 of W^K are head 1
  for (const Term& term : k.terms) {
    CHECK(term.left == static_cast<double>(source.x.get()(4, term.index)));
    CHECK(term.right == static_cast<double>(source.wk.get()(term.index, 5)));
  }
  CHECK(k.bias == static_cast<double>(source.bk->get()(0, 5)));

  const Explanation score = cell(trace, {MatrixKind::kScores, 3}, 5, 1);  // query head 3 reads K of head 1
  for (const Term& term : score.terms) {
    CHECK(term.left == static_cast<double>(trace.q[3].get()(5, term.index)));
    CHECK(term.right == static_cast<double>(trace.k[1].get()(1, term.index)));
  }
  const Explanation scaled = cell(trace, {MatrixKind::kScaled, 3}, 5, 1);
  CHECK(scaled.scores == score.value);
  CHECK(scaled.scale == 1 / std::sqrt(3.0));

  const Explanation out = cell(trace, {MatrixKind::kConcat, 0}, 5, 5);  // head 2, column 1
  CHECK(out.head == 2);
  CHECK(out.column == 1);
  CHECK(out.terms.size() == 5);
  for (const Term& term : out.terms) {
    CHECK(term.index != 2);  // the padding key
    CHECK(within_one_ulp(term.left, trace.heads[2].attn(5, term.index)));
    CHECK(term.right == static_cast<double>(trace.v[1].get()(term.index, 1)));
  }
}

TEST_CASE("a softmax row says why a key is hidden") {
  const Trace trace = run(masked_projected_problem());
  double maximum = 0, denominator = 0;
  const std::vector<SoftmaxTerm> row = explain_softmax_row(trace, 1, 3, &maximum, &denominator);
  const RowStats& stats = trace.heads[1].rows[3];
  CHECK(maximum == doctest::Approx(stats.max).epsilon(1e-14));
  CHECK(denominator == doctest::Approx(stats.denominator).epsilon(1e-14));
  double sum = 0;
  for (const SoftmaxTerm& term : row) {
    const MaskReason want = term.key > 3    ? MaskReason::kCausal
                            : term.key == 2 ? MaskReason::kPadding
                                            : MaskReason::kVisible;
    CHECK(term.mask == want);
    CHECK(within_one_ulp(term.scaled, trace.heads[1].scaled(3, term.key)));
    CHECK((term.exponential == 0) == (want != MaskReason::kVisible));
    CHECK(term.weight == term.exponential / denominator);
    sum += term.exponential;
  }
  CHECK(sum == doctest::Approx(denominator).epsilon(1e-15));

  const Explanation causal = cell(trace, {MatrixKind::kAttn, 1}, 3, 4);
  CHECK(causal.mask == MaskReason::kCausal);
  CHECK(causal.value == 0);
  CHECK(causal.maximum == maximum);
  CHECK(causal.denominator == denominator);
  CHECK(cell(trace, {MatrixKind::kAttn, 1}, 3, 2).mask == MaskReason::kPadding);
  CHECK(cell(trace, {MatrixKind::kKeep, 0}, 3, 2).mask == MaskReason::kPadding);
  // A hidden key still has a score.
  const Explanation score = cell(trace, {MatrixKind::kScores, 1}, 3, 4);
  CHECK(score.mask == MaskReason::kCausal);
  CHECK(within_one_ulp(score.value, trace.heads[1].scores(3, 4)));
}

TEST_CASE("a dead row is 0 without terms") {
  const Trace trace = run(direct_problem());
  const Explanation weight = cell(trace, {MatrixKind::kAttn, 0}, 1, 0);
  CHECK(weight.dead_row);
  CHECK(weight.value == 0);
  CHECK(weight.denominator == 0);
  const Explanation out = cell(trace, {MatrixKind::kHeadsOut, 1}, 1, 1);
  CHECK(out.dead_row);
  CHECK(out.terms.empty());
  CHECK(out.value == 0);
  CHECK(!cell(trace, {MatrixKind::kHeadsOut, 1}, 2, 1).dead_row);
  CHECK(!cell(trace, {MatrixKind::kK, 0}, 1, 1).dead_row);
}

TEST_CASE("a hidden NaN stays out of the explanation, a visible one shows") {
  Problem problem = direct_problem();
  std::get<DirectSource>(problem.source).v[0].edit()(3, 0) = kNan;
  const Trace trace = run(problem);
  const Explanation before = cell(trace, {MatrixKind::kHeadsOut, 0}, 4, 0);
  CHECK(within_one_ulp(before.value, before.stored));
  for (const Term& term : before.terms) CHECK(!std::isnan(term.product()));
  const Explanation after = cell(trace, {MatrixKind::kHeadsOut, 0}, 5, 0);
  CHECK(std::isnan(after.value));
  CHECK(std::isnan(after.stored));
}

TEST_CASE("the steps between a score and its scaled value are shown") {
  const Trace trace = run(variants_problem(RopeStyle::kHalf));
  const Explanation all = cell(trace, {MatrixKind::kScaled, 1}, 2, 0);
  CHECK(all.scale == static_cast<double>(0.7f));
  CHECK(all.after_softcap == 2.5 * std::tanh(all.after_scale / 2.5));
  CHECK(all.alibi == -5 * 0.00390625);  // query 2 stands at key 5; head 1 of 3 has the slope 2^-8
  CHECK(all.bias_value == static_cast<double>((**trace.problem.options.bias)(2, 0)));
  CHECK(all.mask == MaskReason::kWindow);
  CHECK(cell(trace, {MatrixKind::kKeep, 0}, 2, 0).mask == MaskReason::kWindow);

  const Explanation plain = cell(run(direct_problem()), {MatrixKind::kScaled, 1}, 5, 1);
  CHECK(plain.after_scale == plain.value);
  CHECK(plain.after_softcap == plain.value);
  CHECK(plain.alibi == 0);
  CHECK(plain.bias_value == 0);
}

TEST_CASE("the terms of a score are the rotated q and k") {
  const Problem problem = variants_problem(RopeStyle::kInterleaved);
  const Trace trace = run(problem);
  const Explanation score = cell(trace, {MatrixKind::kScores, 2}, 3, 5);
  const auto& source = std::get<DirectSource>(problem.source);
  // Columns 2 and 3 turn together, by position · 50^(−2/6).
  const auto turned = [](const Matrix& m, Index row) {
    const double angle = static_cast<double>(row) * std::pow(50.0, -2.0 / 6);
    return static_cast<double>(m(row, 2)) * std::cos(angle) - static_cast<double>(m(row, 3)) * std::sin(angle);
  };
  CHECK(score.terms[2].left == doctest::Approx(turned(*source.q[2], 3)).epsilon(1e-14));
  CHECK(score.terms[2].right == doctest::Approx(turned(*source.k[0], 5)).epsilon(1e-14));
}

TEST_CASE("the sink's part of a row is shown") {
  const Trace trace = run(variants_problem(RopeStyle::kHalf));
  const Explanation weight = cell(trace, {MatrixKind::kAttn, 2}, 3, 5);
  CHECK(weight.sink == 4.0);
  CHECK(weight.maximum >= 4);
  CHECK(weight.sink_exponential == std::exp(4 - weight.maximum));
  CHECK(weight.sink_weight == doctest::Approx(trace.heads[2].rows[3].sink).epsilon(1e-14));
  double sum = weight.sink_exponential;
  for (const SoftmaxTerm& term : weight.softmax) sum += term.exponential;
  CHECK(sum == doctest::Approx(weight.denominator).epsilon(1e-14));

  const Explanation none = cell(run(direct_problem()), {MatrixKind::kAttn, 0}, 5, 1);
  CHECK(!none.sink);
  CHECK(none.sink_weight == 0);
}
