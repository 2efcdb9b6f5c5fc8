// Edits of the options, the score bias and the sink, one after the other, against full passes.
#include "tests/core/update_support.h"

using namespace qkv;
using namespace qkv::test;

TEST_SUITE("float32 pass") {
  TEST_CASE(
      "each option has the bits of a full pass where rows are redone, and redoes no row that sees nothing of it") {
    Problem problem = random_problem(2, 1, 40, 40, 8, 6);
    Trace trace = pass(problem, Arithmetic::kFloat32);
    // Every edit in turn, each on top of those before.
    const auto apply = [&](Index redone) {
      UpdateReport report;
      trace = edited(std::move(trace), problem, &report);
      CHECK(!report.full);
      CHECK(report.redone_rows == redone);
      const Trace fresh = pass(problem, Arithmetic::kFloat32);
      CHECK(trace.concat == fresh.concat);
      CHECK(trace.keep.get() == fresh.keep.get());
      CHECK(trace.alibi.size() == fresh.alibi.size());
      for (std::size_t h = 0; h < 2; ++h) {
        CHECK(trace.heads[h].attn.get() == fresh.heads[h].attn.get());
        CHECK(trace.heads[h].scaled.get() == fresh.heads[h].scaled.get());
        CHECK(trace.heads[h].scores.get() == fresh.heads[h].scores.get());
      }
    };
    AttentionOptions& o = problem.options;
    o.alibi = true;
    apply(80);
    o.bias = Matrix(Matrix::Zero(40, 40));
    apply(0);
    o.bias->edit()(7, 30) = 2;
    apply(2);
    o.bias->edit().row(9).setConstant(-1);
    apply(2);
    o.window = 38;  // the first two rows and the last two are longer
    apply(8);
    o.causal = true;
    apply(80);  // nearly all rows, so all of them at once
    o.softcap = 3;
    apply(80);
    o.rope = Rope{};
    apply(80);
    o.rope->style = RopeStyle::kInterleaved;
    apply(80);
    o.scale = 0.7f;
    apply(80);
    o.bias.reset();
    apply(4);                         // rows 7 and 9
    o.align = CausalAlign::kTopLeft;  // nothing, where there are as many queries as keys
    apply(0);
    o = {};
    apply(80);
  }

  TEST_CASE("keys that are hidden and shown again, and the sink, rescale rows") {
    Problem problem = random_problem(2, 1, 64, 64, 8, 6);
    Trace trace = pass(problem, Arithmetic::kFloat32);
    const auto apply = [&] {
      UpdateReport report;
      trace = edited(std::move(trace), problem, &report);
      CHECK(!report.full);
      const Trace exact = pass(problem, Arithmetic::kFloat64);
      const Excess excess = compare(trace, exact);
      CHECK(excess.attn <= 2);
      CHECK(excess.out <= 2);
      for (std::size_t h = 0; h < 2; ++h) {
        const double rounding = 4 * score_rounding(exact, static_cast<int>(h));
        for (std::size_t row = 0; row < 64; ++row) {
          const RowStats &got = trace.heads[h].rows[row], &want = exact.heads[h].rows[row];
          CHECK(got.visible == want.visible);
          CHECK(got.max == doctest::Approx(want.max).epsilon(rounding));
          CHECK(got.denominator == doctest::Approx(want.denominator).epsilon(rounding));
          CHECK(got.sink == doctest::Approx(want.sink).epsilon(rounding));
        }
      }
      return report.redone_rows;
    };
    AttentionOptions& o = problem.options;
    o.key_valid.assign(64, 1);
    CHECK(apply() == 0);
    o.key_valid[20] = 0;
    CHECK(apply() < 40);
    CHECK((trace.heads[1].attn->col(20).array() == 0).all());
    o.sink = {0.5f, -1};
    CHECK(apply() < 40);
    o.key_valid[20] = 1;
    o.sink[1] = 0;
    source_of(problem).v[0].edit()(20, 3) = 5;  // another value than when it was hidden
    CHECK(apply() < 60);
    o.sink = {50, 50};  // above every score: all rows
    CHECK(apply() == 128);
    o.sink.clear();
    CHECK(apply() == 128);
    // All but one key, one at a time and back: rows die never, and lose nearly all of their sums on the way.
    for (std::size_t key = 0; key + 1 < 64; ++key) {
      o.key_valid[key] = 0;
      apply();
    }
    o.key_valid[63] = 0;
    apply();
    CHECK(find_warnings(trace).dead_rows == 64);
    CHECK((trace.concat->array() == 0).all());
    for (std::size_t key = 64; key-- > 0;) {
      o.key_valid[key] = 1;
      apply();
    }
    // A key with NaN in V is hidden, edited, and shown.
    source_of(problem).v[0].edit()(5, 0) = kNan;
    o.key_valid[5] = 0;
    apply();
    source_of(problem).v[0].edit()(5, 0) = 1;
    apply();
    o.key_valid[5] = 1;
    apply();
  }

  TEST_CASE("rows whose largest score moves a little are not computed anew") {
    Problem problem = random_problem(1, 1, 200, 64, 8, 6);
    Trace trace = pass(problem, Arithmetic::kFloat32);
    const auto apply = [&] {
      const std::vector<RowStats> before = trace.heads[0].rows;
      UpdateReport report;
      trace = edited(std::move(trace), problem, &report);
      CHECK(report.redone_rows == 0);
      const Trace exact = pass(problem, Arithmetic::kFloat64);
      const Excess excess = compare(trace, exact);
      CHECK(excess.attn <= 2);
      CHECK(excess.out <= 2);
      const double rounding = 4 * score_rounding(exact, 0);
      Index moved = 0;
      for (std::size_t row = 0; row < before.size(); ++row) {
        const RowStats &got = trace.heads[0].rows[row], &want = exact.heads[0].rows[row];
        moved += got.max != before[row].max;
        CHECK(got.max == doctest::Approx(want.max).epsilon(rounding));
        CHECK(got.denominator == doctest::Approx(want.denominator).epsilon(rounding));
      }
      return moved;
    };
    for (int step = 0; step < 2; ++step) {
      source_of(problem).k[0].edit().row(20) *= -1;  // the largest of some rows before, and of others then
      CHECK(apply() > 0);
      problem.options.key_valid.assign(64, 1);
      problem.options.key_valid[7] = 0;
      CHECK(apply() > 0);
      problem.options.key_valid[7] = 1;
      CHECK(apply() > 0);
    }
  }

  TEST_CASE("a key that is edited and shown at once leaves nothing of the score that nobody saw") {
    Problem problem = random_problem(1, 1, 32, 64, 1, 2);
    DirectSource& source = source_of(problem);
    source.q[0].edit().setOnes();
    source.k[0].edit().setZero();
    source.k[0].edit()(3, 0) = 3;
    source.k[0].edit()(10, 0) = 4;
    problem.options.key_valid.assign(64, 1);
    problem.options.key_valid[10] = 0;
    Trace trace = pass(problem, Arithmetic::kFloat32);
    CHECK(trace.heads[0].rows[5].max == 3);
    source.k[0].edit()(3, 0) = 0.5f;  // no longer the largest
    source.k[0].edit()(10, 0) = 1;
    problem.options.key_valid[10] = 1;
    trace = edited(std::move(trace), problem);
    const Trace exact = pass(problem, Arithmetic::kFloat64);
    CHECK(trace.heads[0].rows[5].max == 1);
    CHECK(trace.heads[0].rows[5].denominator == doctest::Approx(exact.heads[0].rows[5].denominator));
    CHECK(compare(trace, exact).out <= 2);
  }

  TEST_CASE("keys without values leave no error behind when they go") {
    // Every key but the last has the weight of the row's maximum and V = 0, so that only sums of weights tell.
    Problem problem = random_problem(1, 1, 8, 600, 4, 4);
    problem.options.key_valid.assign(600, 1);
    DirectSource& source = source_of(problem);
    source.v[0].edit().topRows(599).setZero();
    source.k[0].edit().topRows(599) *= 0.01f;
    Trace trace = pass(problem, Arithmetic::kFloat32);
    for (std::size_t first = 0; first < 599; first += 50) {
      for (std::size_t key = first; key < std::min<std::size_t>(first + 50, 599); ++key) {
        problem.options.key_valid[key] = 0;
        trace = edited(std::move(trace), problem);
      }
      const Excess excess = compare(trace, pass(problem, Arithmetic::kFloat64));
      CHECK(excess.attn <= 2);
      CHECK(excess.out <= 2);
    }
  }
}
