// The forward pass.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <utility>

#include "core/attention/forward.h"
#include "tests/core/attention_support.h"

using namespace qkv;
using namespace qkv::test;

TEST_SUITE("forward") {
  TEST_CASE("the worked example gives the numbers that the lesson states") {
    const Trace trace = run(direct(matrix({{1, 0, 1}, {1, 2, 1}, {1, 1, 1}}), matrix({{0, 2, 1}, {1, 0, 2}, {2, 0, 1}}),
                                   matrix({{1, 0, 1}, {2, 1, 0}, {0, 2, 1}})));
    const HeadTrace& head = trace.heads[0];
    CHECK(head.scores.get() == matrix({{1, 3, 3}, {5, 3, 3}, {3, 3, 3}}));
    // Half of the last digit that the lesson states.
    check_near(head.scaled, matrix({{.577f, 1.732f, 1.732f}, {2.887f, 1.732f, 1.732f}, {1.732f, 1.732f, 1.732f}}),
               .0005f);
    const float third = 1.0f / 3;
    check_near(head.attn, matrix({{.1361f, .4319f, .4319f}, {.6134f, .1933f, .1933f}, {third, third, third}}), .00005f);
    check_near(head.out, matrix({{1.0000f, 1.2958f, .5681f}, {1.0000f, .5799f, .8067f}, {1.0000f, 1.0000f, .6667f}}),
               .00005f);
    CHECK(head.rows[0].max == doctest::Approx(3 / std::sqrt(3.0)).epsilon(1e-15));
    CHECK(head.rows[0].visible == 3);
    CHECK(!trace.out.has_value());
    CHECK(trace.concat == head.out);
  }

  TEST_CASE("rows sum to 1, hidden cells are exactly 0") {
    Problem problem = random_problem(4, 2, 70, 130, 16, 5);
    problem.options.causal = true;
    problem.options.key_valid.assign(130, 1);
    problem.options.key_valid[3] = problem.options.key_valid[99] = 0;
    const Trace trace = run(problem);
    for (const HeadTrace& head : trace.heads) {
      for (Index i = 0; i < 70; ++i) {
        // Each of at most 130 weights below 1 is rounded by no more than half of 2^-24.
        CHECK(std::abs(head.attn->row(i).cast<double>().sum() - 1) <= 130 * 0x1p-25);
        for (Index j = 0; j < 130; ++j) {
          const bool visible = j <= i + 60 && j != 3 && j != 99;
          CHECK(trace.keep(i, j) == (visible ? 1.0f : 0.0f));
          CHECK((head.attn(i, j) == 0.0f) == !visible);
        }
      }
    }
  }

  TEST_CASE("permuting keys with their values changes nothing") {
    Problem problem = random_problem(2, 2, 9, 75, 8, 4);
    Problem permuted = problem;
    for (auto* heads : {&source_of(permuted).k, &source_of(permuted).v}) {
      for (SharedMatrix& head : *heads) head.edit() = Matrix(head->colwise().reverse());
    }
    const Trace a = run(problem), b = run(permuted);
    for (std::size_t h = 0; h < 2; ++h) {
      // Only the order of the float64 sums differs, which shows in the last float32 bit at most.
      check_near(b.heads[h].out, a.heads[h].out, 0x1p-23f);
      check_near(b.heads[h].attn->rowwise().reverse(), a.heads[h].attn, 0x1p-24f);
    }
  }

  TEST_CASE("the scale is the inverse of a temperature") {
    Problem problem = random_problem(1, 1, 6, 8, 4, 3);
    problem.options.scale = 0.0f;
    CHECK((run(problem).heads[0].attn->array() == 0.125f).all());
    problem.options.scale = 1e-12f;
    check_near(run(problem).heads[0].attn, Matrix::Constant(6, 8, 0.125f), 1e-7f);
    problem.options.scale = 1e30f;
    const Trace cold = run(problem);
    for (Index i = 0; i < 6; ++i) {
      Index best = 0;
      cold.heads[0].scores->row(i).maxCoeff(&best);
      CHECK(cold.heads[0].attn(i, best) == 1.0f);
      CHECK(cold.heads[0].attn->row(i).sum() == 1.0f);
    }
    // A negative scale prefers what is unlike.
    problem.options.scale = -0.5f;
    Problem negated = problem;
    negated.options.scale = 0.5f;
    source_of(negated).q[0].edit() *= -1;
    CHECK(run(problem).heads[0].attn.get() == run(negated).heads[0].attn.get());
    CHECK(effective_scale({}, 64) == 0.125);
    CHECK(effective_scale({.scale = 3.0f}, 64) == 3.0);
  }

  TEST_CASE("equal scores give equal weights, at any magnitude") {
    for (const float level : {0.0f, 1.0f, -1e20f, 3e38f}) {
      const Trace trace = run(direct(Matrix::Ones(2, 1), Matrix::Constant(4, 1, level), Matrix::Ones(4, 2)));
      CHECK((trace.heads[0].attn->array() == 0.25f).all());
      CHECK((trace.heads[0].out->array() == 1.0f).all());
    }
  }

  TEST_CASE("all scores negative: the maximum does not start from 0") {
    const Trace trace = run(direct(matrix({{-1}}), matrix({{1e5f}, {2e5f}}), matrix({{1}, {2}}), {.scale = 1.0f}));
    CHECK(trace.heads[0].rows[0].max == -1e5);
    CHECK(trace.heads[0].rows[0].denominator == 1);
    CHECK(trace.heads[0].attn.get() == matrix({{1, 0}}));
  }

  TEST_CASE("a hidden score, however large, has no influence") {
    AttentionOptions hide_last;
    hide_last.key_valid = {1, 1, 0};
    const Matrix q = matrix({{1}}), v = matrix({{1}, {2}, {3}});
    const Trace trace = run(direct(q, matrix({{1}, {2}, {3e38f}}), v, hide_last));
    const Trace small = run(direct(q, matrix({{1}, {2}, {0}}), v, hide_last));
    CHECK(trace.heads[0].attn.get() == small.heads[0].attn.get());
    CHECK(trace.heads[0].out == small.heads[0].out);
    for (const float value : {kNan, kInf, -kInf}) {
      CHECK(run(direct(q, matrix({{1}, {2}, {value}}), v, hide_last)).heads[0].out == small.heads[0].out);
    }
  }

  TEST_CASE("dead rows are 0 and counted") {
    Problem problem = random_problem(2, 1, 5, 3, 4, 2);
    problem.options.causal = true;
    problem.wo = random_matrix(4, 3, 8);
    problem.bo = matrix({{1, 2, 3}});
    const Trace trace = run(problem);  // queries 0 and 1 stand before the first key
    for (const HeadTrace& head : trace.heads) {
      CHECK((head.attn->topRows(2).array() == 0.0f).all());
      CHECK((head.out->topRows(2).array() == 0.0f).all());
      CHECK(head.rows[0].visible == 0);
      CHECK(head.rows[0].denominator == 0);
      CHECK(head.rows[0].max == 0);
      CHECK(head.rows[2].visible == 1);
      CHECK(head.attn(2, 0) == 1.0f);
    }
    CHECK(trace.out->row(1) == problem.bo->get().row(0));
    CHECK(find_warnings(trace).dead_rows == 2);
    CHECK(find_warnings(trace).nan_outputs == 0);
  }

  TEST_CASE("hidden V never reaches the output; visible NaN and Inf follow IEEE rules") {
    for (const float value : {kNan, kInf, -kInf}) {
      Problem problem = random_problem(1, 1, 130, 130, 4, 3);
      problem.options.causal = true;
      const Trace clean = run(problem);
      source_of(problem).v[0].edit()(70, 1) = value;
      const Trace trace = run(problem);
      const Matrix& out = trace.heads[0].out;
      CHECK(out.topRows(70) == clean.heads[0].out->topRows(70));
      CHECK(out.col(0) == clean.heads[0].out->col(0));
      CHECK(out.col(2) == clean.heads[0].out->col(2));
      for (Index i = 70; i < 130; ++i) {
        CHECK((std::isnan(value) ? std::isnan(out(i, 1)) : out(i, 1) == value));
      }
      CHECK(trace.heads[0].attn.get() == clean.heads[0].attn.get());
      CHECK(find_warnings(trace).nan_inputs == 1);
      CHECK(find_warnings(trace).nan_outputs == (std::isnan(value) ? 60 : 0));
    }
    // Inf − Inf, and a weight that vanished times Inf.
    CHECK(std::isnan(run(direct(matrix({{1}}), matrix({{1}, {1}}), matrix({{kInf}, {-kInf}}))).heads[0].out(0, 0)));
    CHECK(std::isnan(run(direct(matrix({{1}}), matrix({{0}, {-1e6f}}), matrix({{1}, {kInf}}))).heads[0].out(0, 0)));
  }

  TEST_CASE("NaN in Q spoils its own row only, NaN in K the rows that see it") {
    Problem problem = random_problem(1, 1, 100, 100, 9, 3);
    problem.options.causal = true;
    const Trace clean = run(problem);
    Problem with_q = problem;
    source_of(with_q).q[0].edit()(50, 4) = kNan;
    const Trace q = run(with_q);
    for (Index i = 0; i < 100; ++i) {
      CHECK(q.heads[0].out->row(i).array().isNaN().any() == (i == 50));
      if (i != 50) CHECK(q.heads[0].out->row(i) == clean.heads[0].out->row(i));
    }
    CHECK(q.heads[0].attn->row(50).leftCols(51).array().isNaN().all());
    CHECK((q.heads[0].attn->row(50).rightCols(49).array() == 0.0f).all());

    source_of(problem).k[0].edit()(80, 0) = kInf;
    const Trace k = run(problem);
    CHECK(k.heads[0].out->topRows(80) == clean.heads[0].out->topRows(80));
    CHECK(k.heads[0].attn->topRows(80) == clean.heads[0].attn->topRows(80));
    CHECK((k.heads[0].scores->col(80).array().abs() == kInf).all());
  }

  TEST_CASE("query heads share the key/value heads in groups") {
    Problem grouped = random_problem(6, 2, 5, 7, 4, 3);
    Problem repeated = grouped;
    source_of(repeated).k.clear();
    source_of(repeated).v.clear();
    for (std::size_t h = 0; h < 6; ++h) {
      source_of(repeated).k.push_back(source_of(grouped).k[h / 3]);
      source_of(repeated).v.push_back(source_of(grouped).v[h / 3]);
    }
    const Trace a = run(grouped), b = run(repeated);
    CHECK(a.concat == b.concat);
    CHECK(kv_head_of(a.shapes, 2) == 0);
    CHECK(kv_head_of(a.shapes, 3) == 1);
    CHECK(kv_head_of(b.shapes, 3) == 3);
    CHECK(a.k.size() == 2);
    CHECK(a.q[0].same_storage(source_of(grouped).q[0]));
  }

  TEST_CASE("a projected source gives what its projection gives directly") {
    const Problem problem = projected_problem();
    const Result<Shapes> shapes = check_shapes(problem);
    REQUIRE(shapes.ok());
    CHECK(shapes.value() ==
          Shapes{.nq = 5, .nk = 5, .heads = 4, .kv_heads = 2, .d_k = 2, .d_v = 3, .d_model = 6, .d_out = 7});
    Problem as_direct = problem;
    as_direct.source = project(std::get<ProjectedSource>(problem.source), shapes.value());
    const Trace a = run(problem), b = run(as_direct);
    CHECK(a.concat == b.concat);
    CHECK(*a.out == *b.out);
    const auto& source = std::get<ProjectedSource>(problem.source);
    const MatrixD k =
        (source.x->cast<double>() * source.wk->cast<double>()).rowwise() + source.bk->get().row(0).cast<double>();
    CHECK(*a.k[1] == Matrix(k.rightCols(2).cast<float>()));
  }

  TEST_CASE("a raised stop flag ends the pass") {
    StopFlag stop = true;
    for (const Problem& problem : {projected_problem(), random_problem(1, 1, 3, 3, 2, 2)}) {
      const Result<Trace> trace = forward(problem, {.stop = &stop});
      REQUIRE(!trace.ok());
      CHECK(trace.error().code == ErrorCode::kCancelled);
    }
    stop = false;
    CHECK(forward(projected_problem(), {.stop = &stop}).ok());

    const Problem large = random_problem(64, 64, 768, 768, 64, 64);
    Result<Trace> trace = bad_input("");
    std::thread pass([&] { trace = forward(large, {.stop = &stop}); });
    stop = true;
    pass.join();
    REQUIRE(!trace.ok());
    CHECK(trace.error().code == ErrorCode::kCancelled);
  }

  TEST_CASE("find gives what there is") {
    Problem everything = projected_problem();
    everything.options.alibi = true;
    const Index tokens = run(everything).shapes.nq;
    everything.options.bias = random_matrix(tokens, tokens, 5);
    const Trace projected = run(everything), given = run(random_problem(4, 2, 3, 3, 2, 2));
    for (const MatrixKind kind : kAllMatrixKinds) CHECK(projected.find({kind, 0}) != nullptr);
    for (const MatrixKind kind : {MatrixKind::kX, MatrixKind::kWq, MatrixKind::kBv, MatrixKind::kWo, MatrixKind::kOut,
                                  MatrixKind::kAlibi, MatrixKind::kBias}) {
      CHECK(given.find({kind}) == nullptr);
    }
    CHECK(given.find({MatrixKind::kQ, 3}) == &given.q[3].get());
    CHECK(given.find({MatrixKind::kK, 1}) == &given.k[1].get());
    CHECK(given.find({MatrixKind::kK, 2}) == nullptr);
    CHECK(given.find({MatrixKind::kAttn, 4}) == nullptr);
    CHECK(given.find({MatrixKind::kAttn, -1}) == nullptr);
    CHECK(given.find({MatrixKind::kScaled, 2}) == &given.heads[2].scaled.get());
    CHECK(given.find({MatrixKind::kKeep, 0}) == &given.keep.get());
    CHECK(projected.find({MatrixKind::kBias, 0}) == &projected.problem.options.bias->get());
    CHECK(projected.find({MatrixKind::kAlibi, 1}) == &projected.alibi[1].get());
    CHECK(projected.find({MatrixKind::kAlibi, projected.shapes.heads}) == nullptr);
    CHECK(projected.find({MatrixKind::kAlibi, -1}) == nullptr);
  }

  TEST_CASE("work grows with every dimension") {
    const Shapes base = {.nq = 10, .nk = 10, .heads = 2, .kv_heads = 2, .d_k = 4, .d_v = 4};
    Shapes larger = base;
    larger.nk = 20;
    CHECK(estimated_flops(larger) == 2 * estimated_flops(base));
    larger = base;
    larger.d_out = 8;
    CHECK(estimated_flops(larger) == estimated_flops(base) + 2 * 10 * 8 * 8);
  }
}
