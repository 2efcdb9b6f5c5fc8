#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "core/attention/forward.h"
#include "core/attention/head_stats.h"

using namespace qkv;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

Matrix matrix(std::initializer_list<std::initializer_list<float>> rows) { return Matrix(rows); }

Matrix random_matrix(Index rows, Index cols, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  return Matrix::NullaryExpr(rows, cols, [&] { return normal(random); });
}

Problem direct(Matrix q, Matrix k, Matrix v, AttentionOptions options = {}) {
  return {.source = DirectSource{{std::move(q)}, {std::move(k)}, {std::move(v)}}, .options = std::move(options)};
}

// `heads` query heads over `kv_heads`, of random numbers.
Problem random_problem(int heads, int kv_heads, Index nq, Index nk, Index d_k, Index d_v, unsigned seed = 1) {
  DirectSource source;
  for (int h = 0; h < heads; ++h) source.q.emplace_back(random_matrix(nq, d_k, seed++));
  for (int h = 0; h < kv_heads; ++h) {
    source.k.emplace_back(random_matrix(nk, d_k, seed++));
    source.v.emplace_back(random_matrix(nk, d_v, seed++));
  }
  return {.source = std::move(source)};
}

Problem projected_problem() {
  return {.source = ProjectedSource{.x = random_matrix(5, 6, 1),
                                    .wq = random_matrix(6, 8, 2),
                                    .wk = random_matrix(6, 4, 3),
                                    .wv = random_matrix(6, 6, 4),
                                    .bq = random_matrix(1, 8, 5),
                                    .bk = random_matrix(1, 4, 6),
                                    .bv = random_matrix(1, 6, 7),
                                    .heads = 4,
                                    .kv_heads = 2},
          .wo = random_matrix(12, 7, 8),
          .bo = random_matrix(1, 7, 9)};
}

DirectSource& source_of(Problem& problem) { return std::get<DirectSource>(problem.source); }
ProjectedSource& projected_of(Problem& problem) { return std::get<ProjectedSource>(problem.source); }

Trace run(const Problem& problem) {
  Result<Trace> trace = forward(problem);
  REQUIRE_MESSAGE(trace.ok(), (trace.ok() ? "" : trace.error().message));
  return std::move(trace).value();
}

void check_near(const Matrix& got, const Matrix& want, float tolerance) {
  REQUIRE(got.rows() == want.rows());
  REQUIRE(got.cols() == want.cols());
  for (Index i = 0; i < got.size(); ++i) {
    CHECK_MESSAGE(std::abs(got.data()[i] - want.data()[i]) <= tolerance, i, ": ", got.data()[i], " ", want.data()[i]);
  }
}

// The message of the error that check_shapes gives.
std::string objection(const Problem& problem) {
  const Result<Shapes> shapes = check_shapes(problem);
  if (shapes.ok()) return "";
  CHECK(shapes.error().code == ErrorCode::kBadInput);
  CHECK(!forward(problem).ok());
  return shapes.error().message;
}

}  // namespace

TEST_SUITE("forward") {
  TEST_CASE("the worked example gives the numbers that the lesson states") {
    const Trace trace = run(direct(matrix({{1, 0, 1}, {1, 2, 1}, {1, 1, 1}}), matrix({{0, 2, 1}, {1, 0, 2}, {2, 0, 1}}),
                                   matrix({{1, 0, 1}, {2, 1, 0}, {0, 2, 1}})));
    const HeadTrace& head = trace.heads[0];
    CHECK(head.scores == matrix({{1, 3, 3}, {5, 3, 3}, {3, 3, 3}}));
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
        CHECK(std::abs(head.attn.row(i).cast<double>().sum() - 1) <= 130 * 0x1p-25);
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
      check_near(b.heads[h].attn.rowwise().reverse(), a.heads[h].attn, 0x1p-24f);
    }
  }

  TEST_CASE("the scale is the inverse of a temperature") {
    Problem problem = random_problem(1, 1, 6, 8, 4, 3);
    problem.options.scale = 0.0f;
    CHECK((run(problem).heads[0].attn.array() == 0.125f).all());
    problem.options.scale = 1e-12f;
    check_near(run(problem).heads[0].attn, Matrix::Constant(6, 8, 0.125f), 1e-7f);
    problem.options.scale = 1e30f;
    const Trace cold = run(problem);
    for (Index i = 0; i < 6; ++i) {
      Index best = 0;
      cold.heads[0].scores.row(i).maxCoeff(&best);
      CHECK(cold.heads[0].attn(i, best) == 1.0f);
      CHECK(cold.heads[0].attn.row(i).sum() == 1.0f);
    }
    // A negative scale prefers what is unlike.
    problem.options.scale = -0.5f;
    Problem negated = problem;
    negated.options.scale = 0.5f;
    source_of(negated).q[0].edit() *= -1;
    CHECK(run(problem).heads[0].attn == run(negated).heads[0].attn);
    CHECK(effective_scale({}, 64) == 0.125);
    CHECK(effective_scale({.scale = 3.0f}, 64) == 3.0);
  }

  TEST_CASE("equal scores give equal weights, at any magnitude") {
    for (const float level : {0.0f, 1.0f, -1e20f, 3e38f}) {
      const Trace trace = run(direct(Matrix::Ones(2, 1), Matrix::Constant(4, 1, level), Matrix::Ones(4, 2)));
      CHECK((trace.heads[0].attn.array() == 0.25f).all());
      CHECK((trace.heads[0].out.array() == 1.0f).all());
    }
  }

  TEST_CASE("all scores negative: the maximum does not start from 0") {
    const Trace trace = run(direct(matrix({{-1}}), matrix({{1e5f}, {2e5f}}), matrix({{1}, {2}}), {.scale = 1.0f}));
    CHECK(trace.heads[0].rows[0].max == -1e5);
    CHECK(trace.heads[0].rows[0].denominator == 1);
    CHECK(trace.heads[0].attn == matrix({{1, 0}}));
  }

  TEST_CASE("a hidden score, however large, has no influence") {
    AttentionOptions hide_last;
    hide_last.key_valid = {1, 1, 0};
    const Matrix q = matrix({{1}}), v = matrix({{1}, {2}, {3}});
    const Trace trace = run(direct(q, matrix({{1}, {2}, {3e38f}}), v, hide_last));
    const Trace small = run(direct(q, matrix({{1}, {2}, {0}}), v, hide_last));
    CHECK(trace.heads[0].attn == small.heads[0].attn);
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
      CHECK((head.attn.topRows(2).array() == 0.0f).all());
      CHECK((head.out.topRows(2).array() == 0.0f).all());
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
      CHECK(out.topRows(70) == clean.heads[0].out.topRows(70));
      CHECK(out.col(0) == clean.heads[0].out.col(0));
      CHECK(out.col(2) == clean.heads[0].out.col(2));
      for (Index i = 70; i < 130; ++i) {
        CHECK((std::isnan(value) ? std::isnan(out(i, 1)) : out(i, 1) == value));
      }
      CHECK(trace.heads[0].attn == clean.heads[0].attn);
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
      CHECK(q.heads[0].out.row(i).array().isNaN().any() == (i == 50));
      if (i != 50) CHECK(q.heads[0].out.row(i) == clean.heads[0].out.row(i));
    }
    CHECK(q.heads[0].attn.row(50).leftCols(51).array().isNaN().all());
    CHECK((q.heads[0].attn.row(50).rightCols(49).array() == 0.0f).all());

    source_of(problem).k[0].edit()(80, 0) = kInf;
    const Trace k = run(problem);
    CHECK(k.heads[0].out.topRows(80) == clean.heads[0].out.topRows(80));
    CHECK(k.heads[0].attn.topRows(80) == clean.heads[0].attn.topRows(80));
    CHECK((k.heads[0].scores.col(80).array().abs() == kInf).all());
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
      const Result<Trace> trace = forward(problem, &stop);
      REQUIRE(!trace.ok());
      CHECK(trace.error().code == ErrorCode::kCancelled);
    }
    stop = false;
    CHECK(forward(projected_problem(), &stop).ok());

    const Problem large = random_problem(64, 64, 768, 768, 64, 64);
    Result<Trace> trace = bad_input("");
    std::thread pass([&] { trace = forward(large, &stop); });
    stop = true;
    pass.join();
    REQUIRE(!trace.ok());
    CHECK(trace.error().code == ErrorCode::kCancelled);
  }

  TEST_CASE("find gives what there is") {
    const Trace projected = run(projected_problem()), given = run(random_problem(4, 2, 3, 3, 2, 2));
    for (const MatrixKind kind : kAllMatrixKinds) CHECK(projected.find({kind, 0}) != nullptr);
    for (const MatrixKind kind :
         {MatrixKind::kX, MatrixKind::kWq, MatrixKind::kBv, MatrixKind::kWo, MatrixKind::kOut}) {
      CHECK(given.find({kind}) == nullptr);
    }
    CHECK(given.find({MatrixKind::kQ, 3}) == &given.q[3].get());
    CHECK(given.find({MatrixKind::kK, 1}) == &given.k[1].get());
    CHECK(given.find({MatrixKind::kK, 2}) == nullptr);
    CHECK(given.find({MatrixKind::kAttn, 4}) == nullptr);
    CHECK(given.find({MatrixKind::kAttn, -1}) == nullptr);
    CHECK(given.find({MatrixKind::kScaled, 2}) == &given.heads[2].scaled);
    CHECK(given.find({MatrixKind::kKeep, 0}) == &given.keep);
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

TEST_SUITE("check_shapes") {
  TEST_CASE("a direct source") {
    const Problem good = random_problem(4, 2, 5, 6, 3, 2);
    REQUIRE(check_shapes(good).ok());
    CHECK(check_shapes(good).value() == Shapes{.nq = 5, .nk = 6, .heads = 4, .kv_heads = 2, .d_k = 3, .d_v = 2});
    const auto with = [&good](auto&& edit) {
      Problem problem = good;
      edit(source_of(problem));
      return objection(problem);
    };
    CHECK(with([](auto& s) { s.k = {Matrix(6, 4), Matrix(6, 4)}; }) == "k has 4 columns but q has 3: both need d_k");
    CHECK(with([](auto& s) {
            s.v = {Matrix(1, 2), Matrix(1, 2)};
          }) == "v has 1 row but k has 6: both need one row for each key");
    CHECK(with([](auto& s) { s.q.pop_back(); }) ==
          "q has 3 heads but k and v have 2: the heads of q must be a multiple of the heads of k and v");
    CHECK(with([](auto& s) { s.v.pop_back(); }) == "v has 1 head but k has 2: both need the same number of heads");
    CHECK(with([](auto& s) { s.q[2] = Matrix(5, 4); }) ==
          "q[2] is 5×4 but q[0] is 5×3: every head of q needs the same shape");
    CHECK(with([](auto& s) { s.k[1] = Matrix(7, 3); }) ==
          "k[1] is 7×3 but k[0] is 6×3: every head of k needs the same shape");
    CHECK(with([](auto& s) { s.v[1] = Matrix(6, 1); }) ==
          "v[1] is 6×1 but v[0] is 6×2: every head of v needs the same shape");
    CHECK(with([](auto& s) { s.q.clear(); }) == "q has 0 heads: it needs at least one");
    CHECK(with([](auto& s) { s.k.clear(); }) == "k has 0 heads: it needs at least one");
    CHECK(with([](auto& s) { s.v[0] = Matrix(6, 0); }) == "v is 6×0: it needs at least one row and one column");
    CHECK(objection({}) == "q has 0 heads: it needs at least one");
  }

  TEST_CASE("a projected source") {
    const Problem good = projected_problem();
    REQUIRE(check_shapes(good).ok());
    const auto with = [&good](auto&& edit) {
      Problem problem = good;
      edit(projected_of(problem));
      return objection(problem);
    };
    CHECK(with([](auto& s) { s.x = Matrix(0, 6); }) == "x is 0×6: it needs at least one row and one column");
    CHECK(with([](auto& s) { s.wq = Matrix(5, 8); }) == "wq has 5 rows but x has 6 columns: both need d_model");
    CHECK(with([](auto& s) { s.wk = Matrix(7, 4); }) == "wk has 7 rows but x has 6 columns: both need d_model");
    CHECK(with([](auto& s) { s.wv = Matrix(1, 6); }) == "wv has 1 row but x has 6 columns: both need d_model");
    CHECK(with([](auto& s) { s.wq = Matrix(6, 9); }) ==
          "wq has 9 columns but heads is 4: the columns must be a multiple of heads");
    CHECK(with([](auto& s) { s.wv = Matrix(6, 7); }) ==
          "wv has 7 columns but kv_heads is 2: the columns must be a multiple of kv_heads");
    CHECK(with([](auto& s) { s.wk = Matrix(6, 6); }) ==
          "wk gives 3 columns a head (6 / 2) but wq gives 2 (8 / 4): both need d_k");
    CHECK(with([](auto& s) { s.bq = Matrix(1, 7); }) == "bq is 1×7 but wq has 8 columns: bq needs to be 1×8");
    CHECK(with([](auto& s) { s.bk = Matrix(2, 4); }) == "bk is 2×4 but wk has 4 columns: bk needs to be 1×4");
    CHECK(with([](auto& s) { s.bv = Matrix(6, 1); }) == "bv is 6×1 but wv has 6 columns: bv needs to be 1×6");
    CHECK(with([](auto& s) { s.heads = 3; }) ==
          "q has 3 heads but k and v have 2: the heads of q must be a multiple of the heads of k and v");
    CHECK(with([](auto& s) { s.heads = 0; }) == "heads is 0: it needs to be at least 1");
    CHECK(with([](auto& s) { s.kv_heads = -1; }) == "kv_heads is -1: it needs to be at least 1");
  }

  TEST_CASE("the output projection and the options") {
    Problem problem = projected_problem();
    problem.wo = Matrix(11, 7);
    CHECK(objection(problem) == "wo has 11 rows but the heads side by side have 12 columns (4·3): both need heads·d_v");
    problem.wo = Matrix(12, 8);
    CHECK(objection(problem) == "bo is 1×7 but wo has 8 columns: bo needs to be 1×8");
    problem.wo.reset();
    CHECK(objection(problem) == "bo is 1×7 but there is no wo: add wo or remove bo");
    problem.bo.reset();
    CHECK(objection(problem) == "");

    problem.options.key_valid = {1, 1, 1};
    CHECK(objection(problem) == "key_valid has 3 entries but there are 5 keys: it needs one entry for each key");
    problem.options = {.scale = kNan};
    CHECK(objection(problem) == "scale is NaN: it needs to be a finite number, or absent for 1/√d_k");
    problem.options = {.scale = -kInf};
    CHECK(objection(problem) == "scale is -inf: it needs to be a finite number, or absent for 1/√d_k");
  }
}

TEST_SUITE("softmax_row") {
  TEST_CASE("in place, with its statistics") {
    std::vector<double> row = {1, 2, 700, 3};
    const std::vector<std::uint8_t> keep = {1, 1, 0, 1};
    const RowStats stats = softmax_row(row, keep, row);
    CHECK(stats.max == 3);
    CHECK(stats.visible == 3);
    CHECK(stats.denominator == doctest::Approx(1 + std::exp(-1.0) + std::exp(-2.0)).epsilon(1e-15));
    CHECK(row[2] == 0);
    CHECK(row[0] + row[1] + row[3] == doctest::Approx(1).epsilon(1e-15));
    CHECK(row[3] == 1 / stats.denominator);
  }

  TEST_CASE("visible NaN and Inf make every visible weight NaN, and leave hidden ones 0") {
    const double inf = std::numeric_limits<double>::infinity();
    for (const double value : {std::nan(""), inf}) {
      for (const std::size_t at : {std::size_t{0}, std::size_t{2}}) {
        std::vector<double> row = {1, 2, 3, 4}, weights(4);
        row[at] = value;
        softmax_row(row, std::vector<std::uint8_t>{1, 1, 1, 0}, weights);
        CHECK(std::isnan(weights[0]));
        CHECK(std::isnan(weights[1]));
        CHECK(std::isnan(weights[2]));
        CHECK(weights[3] == 0);
      }
    }
    std::vector<double> row = {-inf, 0, 0};
    softmax_row(row, std::vector<std::uint8_t>{1, 1, 1}, row);
    CHECK(row == std::vector<double>{0, 0.5, 0.5});
  }

  TEST_CASE("no visible key, or no key") {
    std::vector<double> row = {std::nan(""), 5};
    CHECK(softmax_row(row, std::vector<std::uint8_t>{0, 0}, row).visible == 0);
    CHECK(row == std::vector<double>{0, 0});
    CHECK(softmax_row({}, {}, {}).visible == 0);
  }
}

TEST_SUITE("masks") {
  TEST_CASE("the reason that a key is hidden") {
    const AttentionOptions options = {.causal = true, .key_valid = {1, 0, 1, 1}};
    CHECK(mask_reason(options, 2, 4, 0, 0) == MaskReason::kVisible);
    CHECK(mask_reason(options, 2, 4, 0, 1) == MaskReason::kPadding);
    CHECK(mask_reason(options, 2, 4, 0, 2) == MaskReason::kVisible);
    CHECK(mask_reason(options, 2, 4, 0, 3) == MaskReason::kCausal);
    const AttentionOptions top_left = {.causal = true, .align = CausalAlign::kTopLeft};
    CHECK(mask_reason(top_left, 2, 4, 0, 1) == MaskReason::kCausal);
    CHECK(mask_reason(top_left, 2, 4, 1, 1) == MaskReason::kVisible);
    const KeepMatrix keep = keep_matrix(options, 2, 4);
    CHECK(keep.cast<float>() == matrix({{1, 0, 1, 0}, {1, 0, 1, 1}}));
  }
}

TEST_SUITE("head_stats") {
  TEST_CASE("uniform, one-hot and mixed rows") {
    const Matrix all = Matrix::Ones(3, 4);
    const HeadStats uniform = head_stats(Matrix(Matrix::Constant(3, 4, 0.25f)), all, 0);
    CHECK(uniform.entropy == doctest::Approx(std::log(4.0)).epsilon(1e-15));
    CHECK(uniform.max_entropy == doctest::Approx(std::log(4.0)).epsilon(1e-15));
    CHECK(uniform.first_token == 0.25);
    CHECK(uniform.previous_token == 0.25);
    CHECK(uniform.diagonal == 0.25);

    // The last query is aligned with the last key: query i stands at key i + 1.
    const HeadStats diagonal = head_stats(matrix({{0, 1, 0, 0}, {0, 0, 1, 0}, {0, 1, 0, 0}}), all, 1);
    CHECK(diagonal.entropy == 0);
    CHECK(diagonal.diagonal == doctest::Approx(2.0 / 3));
    CHECK(diagonal.previous_token == 0);
    CHECK(diagonal.first_token == 0);
    CHECK(head_stats(matrix({{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}), all, 1).previous_token == 1);
  }

  TEST_CASE("dead rows, NaN rows and rows without a previous key are left out") {
    const Matrix attn = matrix({{1, 0, 0}, {kNan, kNan, 0}, {0, 0, 0}, {0.5f, 0, 0.5f}});
    const Matrix keep = matrix({{1, 0, 0}, {1, 1, 0}, {0, 0, 0}, {1, 0, 1}});
    const HeadStats stats = head_stats(attn, keep, 0);
    CHECK(stats.entropy == doctest::Approx(std::log(2.0) / 2));
    CHECK(stats.max_entropy == doctest::Approx(std::log(2.0) / 2));
    CHECK(stats.first_token == 0.75);
    CHECK(stats.diagonal == 1);          // row 0; there is no key 3
    CHECK(stats.previous_token == 0.5);  // row 3
    CHECK(std::isnan(row_entropy(attn, 1)));
    CHECK(row_entropy(attn, 2) == 0);
    const HeadStats none = head_stats(attn, Matrix::Zero(4, 3), 0);
    CHECK(none.entropy == 0);
    CHECK(none.first_token == 0);
  }
}

TEST_SUITE("matrix_id") {
  TEST_CASE("keys, symbols and names are unique and found again") {
    std::set<std::string_view> keys, symbols, names;
    for (const MatrixKind kind : kAllMatrixKinds) {
      CHECK(kind_from_key(file_key(kind)) == kind);
      keys.insert(file_key(kind));
      symbols.insert(symbol(kind));
      names.insert(long_name(kind));
    }
    CHECK(keys.size() == kAllMatrixKinds.size());
    CHECK(symbols.size() == kAllMatrixKinds.size());
    CHECK(names.size() >= kAllMatrixKinds.size());
    CHECK(!kind_from_key("Q").has_value());
    CHECK(!kind_from_key("").has_value());
    CHECK(file_key(MatrixKind::kHeadsOut) == "heads_out");
    CHECK(symbol(MatrixKind::kWk) == "W\u1D37");
    CHECK(symbol(MatrixKind::kWv) == "W\u2C7D");
    CHECK(symbol(MatrixKind::kWo) == "W\u1D3C");
  }

  TEST_CASE("the axes agree with the sizes of a computation whose dimensions all differ") {
    const Trace trace = run(projected_problem());
    const auto size = [&s = trace.shapes](Axis axis) -> Index {
      switch (axis) {
        case Axis::kQueries:
          return s.nq;
        case Axis::kKeys:
          return s.nk;
        case Axis::kDk:
          return s.d_k;
        case Axis::kDv:
          return s.d_v;
        case Axis::kModel:
          return s.d_model;
        case Axis::kHeadsDk:
          return s.heads * s.d_k;
        case Axis::kKvHeadsDk:
          return s.kv_heads * s.d_k;
        case Axis::kKvHeadsDv:
          return s.kv_heads * s.d_v;
        case Axis::kHeadsDv:
          return s.heads * s.d_v;
        case Axis::kOut:
          return s.d_out;
        case Axis::kSingle:
          return 1;
      }
      return -1;
    };
    for (const MatrixKind kind : kAllMatrixKinds) {
      CAPTURE(file_key(kind));
      const Matrix& matrix = *trace.find({kind, 0});
      CHECK(matrix.rows() == size(row_axis(kind)));
      CHECK(matrix.cols() == size(col_axis(kind)));
      CHECK((trace.find({kind, 1}) != &matrix) == is_per_head(kind));
      if (is_weights(kind)) CHECK((matrix.array() >= 0.0f && matrix.array() <= 1.0f).all());
    }
  }
}

TEST_SUITE("DenseSource") {
  TEST_CASE("reads blocks and reduces them, leaving NaN out") {
    Matrix cells(3, 5);
    cells << 1, 2, 3, 4, 5, 6, 7, kNan, kNan, 10, kNan, 12, kNan, kNan, -15;
    const DenseSource source(cells);
    CHECK(source.rows() == 3);
    CHECK(source.cols() == 5);
    CHECK(source.data() == cells.data());
    Matrix block(1, 2);
    source.read({0, 3, 1, 2}, block);
    CHECK(block == matrix({{4, 5}}));

    Matrix reduced(2, 3);
    source.reduce({0, 0, 3, 5}, 1, Reduction::kMean, reduced);
    CHECK(reduced(0, 0) == 4);
    CHECK(reduced(0, 1) == 3.5f);
    CHECK(reduced(0, 2) == 7.5f);
    CHECK(reduced(1, 0) == 12);
    CHECK(std::isnan(reduced(1, 1)));
    CHECK(reduced(1, 2) == -15);
    source.reduce({0, 0, 3, 5}, 1, Reduction::kMax, reduced);
    CHECK(reduced(0, 0) == 7);
    CHECK(std::isnan(reduced(1, 1)));
    CHECK(reduced(1, 2) == -15);

    Matrix one(1, 1);
    source.reduce({1, 1, 2, 4}, 30, Reduction::kMax, one);
    CHECK(one(0, 0) == 12);
    source.reduce({0, 0, 1, 1}, 0, Reduction::kMean, one);
    CHECK(one(0, 0) == 1);
  }
}
