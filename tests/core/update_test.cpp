// The float32 path against the float64 one, and edits of it against full passes: over long random sequences, with all
// options.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/attention/update.h"
#include "tests/core/slow_attention.h"

using namespace qkv;
using namespace qkv::test;

namespace {

Trace pass(const Problem& problem, Arithmetic arithmetic, ThreadPool* pool = nullptr) {
  Result<Trace> trace = forward(problem, {.arithmetic = arithmetic, .pool = pool});
  REQUIRE_MESSAGE(trace.ok(), (trace.ok() ? "" : trace.error().message));
  return std::move(trace).value();
}

double largest(const Matrix& matrix) { return static_cast<double>(matrix.size() ? matrix.cwiseAbs().maxCoeff() : 0); }

// What rounding of the scaled scores of a head can come to, as a part of a weight: each of the d_k products, and what
// is added, is rounded in float32. A weight moves by as much of itself as its score does.
double score_rounding(const Trace& exact, int head) {
  const auto h = static_cast<std::size_t>(head);
  const auto kv = static_cast<std::size_t>(kv_head_of(exact.shapes, head));
  const AttentionOptions& o = exact.problem.options;
  // |Q|·|K| bounds the partial sums, rotated or not: a rope turns pairs, which at most doubles them.
  const MatrixD products = exact.q[h]->cast<double>().cwiseAbs() * exact.k[kv]->cast<double>().cwiseAbs().transpose();
  double size = products.maxCoeff() * std::abs(effective_scale(o, exact.shapes.d_k)) * (o.rope ? 2 : 1);
  if (o.alibi) size += static_cast<double>(exact.shapes.nk + exact.shapes.nq);
  if (o.bias) size += largest(**o.bias);
  for (const float sink : o.sink) size = std::max(size, std::abs(static_cast<double>(sink)));
  return 4 * 0x1p-24 * std::max(1.0, size);
}

struct Excess {
  double attn = 0, out = 0;  // error over bound, the largest
};

// How far a float32 trace is from the float64 one, in units of what one pass may be off by.
Excess compare(const Trace& trace, const Trace& exact) {
  Excess worst;
  for (int head = 0; head < exact.shapes.heads; ++head) {
    const auto h = static_cast<std::size_t>(head);
    const double rounding = score_rounding(exact, head);
    const Matrix &attn = *trace.heads[h].attn, &want = *exact.heads[h].attn;
    const double off = (attn.cast<double>() - want.cast<double>()).cwiseAbs().maxCoeff();
    worst.attn = std::max(worst.attn, off / rounding);
    // A row of O is off by its weights' errors and by the rounding of its sum, both at most this much of Σ a·|V|.
    const Matrix& v = *exact.v[static_cast<std::size_t>(kv_head_of(exact.shapes, head))];
    const Eigen::VectorXd size = want.cast<double>() * v.cast<double>().cwiseAbs().rowwise().maxCoeff();
    for (Index row = 0; row < exact.shapes.nq; ++row) {
      const double error = (trace.heads[h].out.row(row).cast<double>() - exact.heads[h].out.row(row).cast<double>())
                               .cwiseAbs()
                               .maxCoeff();
      if (error > 0) worst.out = std::max(worst.out, error / (rounding * size[row] + 1e-30));
      if (exact.heads[h].rows[static_cast<std::size_t>(row)].visible == 0) CHECK(error == 0);
    }
  }
  if (exact.out) {
    const double size =
        largest(exact.concat) * exact.problem.wo->get().cwiseAbs().colwise().sum().maxCoeff() + largest(*exact.out);
    const double error = (trace.out->cast<double>() - exact.out->cast<double>()).cwiseAbs().maxCoeff();
    double rounding = 0;
    for (int head = 0; head < exact.shapes.heads; ++head) rounding = std::max(rounding, score_rounding(exact, head));
    worst.out = std::max(worst.out, error / (rounding * size + 1e-30));
  }
  return worst;
}

// Random edits of one problem.
class Editor {
 public:
  explicit Editor(unsigned seed) : random_(seed) {}

  int below(Index limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }

  // A cell or a row. Now and then numbers a thousand times as large or as small.
  void edit(SharedMatrix& shared) {
    Matrix& cells = shared.edit();
    const int row = below(cells.rows());
    const float size = below(6) == 0 ? 1000.0f : below(6) == 0 ? 0.001f : 1.0f;
    std::normal_distribution<float> normal(0, size);
    if (below(2) == 0) {
      cells(row, below(cells.cols())) = normal(random_);
    } else {
      for (Index c = 0; c < cells.cols(); ++c) cells(row, c) = normal(random_);
    }
  }

  void edit(Problem& problem) {
    if (auto* direct = std::get_if<DirectSource>(&problem.source)) {
      std::vector<SharedMatrix>* which[] = {&direct->q, &direct->k, &direct->v};
      std::vector<SharedMatrix>& heads = *which[below(3)];
      edit(heads[static_cast<std::size_t>(below(static_cast<Index>(heads.size())))]);
    } else {
      auto& p = std::get<ProjectedSource>(problem.source);
      SharedMatrix* which[] = {&p.x, &p.x, &p.wq, &p.wk, &p.wv, &*p.bq, &*p.bk, &*p.bv};
      edit(*which[below(8)]);
    }
  }

  // A cell or a row of the score bias, a key hidden or shown, a logit of the sink: what is edited again and again.
  void edit(AttentionOptions& options, const Shapes& shapes) {
    switch (below(3)) {
      case 0:
        if (!options.bias) options.bias = Matrix(Matrix::Zero(shapes.nq, shapes.nk));
        edit(*options.bias);
        break;
      case 1:
        if (options.key_valid.empty()) options.key_valid.assign(static_cast<std::size_t>(shapes.nk), 1);
        options.key_valid[static_cast<std::size_t>(below(shapes.nk))] ^= 1;
        break;
      default:
        if (options.sink.empty()) options.sink.assign(static_cast<std::size_t>(shapes.heads), 0);
        options.sink[static_cast<std::size_t>(below(shapes.heads))] = static_cast<float>(below(80)) / 10 - 4;
    }
  }

  void toggle(AttentionOptions& options, const Shapes& shapes) {
    switch (below(10)) {
      case 0:
        options.causal = !options.causal;
        break;
      case 1:
        options.alibi = !options.alibi;
        break;
      case 2:
        options.scale = options.scale ? std::nullopt : std::optional(0.3f);
        break;
      case 3:
        options.softcap = options.softcap ? std::nullopt : std::optional(5.0f);
        break;
      case 4:
        if (shapes.d_k % 2 == 0) options.rope = options.rope ? std::nullopt : std::optional(Rope{});
        break;
      case 5:
        options.align = options.align == CausalAlign::kTopLeft ? CausalAlign::kBottomRight : CausalAlign::kTopLeft;
        break;
      case 6:
        options.bias.reset();
        break;
      case 7:
        options.key_valid.clear();
        break;
      case 8:
        options.sink.clear();
        break;
      default:
        options.window = options.window ? std::nullopt : std::optional<Index>(3);
    }
  }

 private:
  std::mt19937 random_;
};

Trace edited(Trace trace, const Problem& problem, UpdateReport* report = nullptr, ThreadPool* pool = nullptr) {
  Result<Trace> result = update(std::move(trace), problem, {.arithmetic = Arithmetic::kFloat32, .pool = pool}, report);
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().message));
  return std::move(result).value();
}

// A token less, or one more with random numbers, on every matrix that has a row for it.
void resize_tokens(Problem& problem, Index tokens, Editor& editor) {
  auto& source = std::get<DirectSource>(problem.source);
  for (auto* heads : {&source.q, &source.k, &source.v}) {
    for (SharedMatrix& head : *heads) {
      const Matrix before = *head;
      Matrix after = random_matrix(tokens, before.cols(), static_cast<unsigned>(editor.below(1000)));
      const Index kept = std::min(tokens, before.rows());
      after.topRows(kept) = before.topRows(kept);
      head = after;
    }
  }
}

}  // namespace

TEST_SUITE("float32 pass") {
  TEST_CASE("random combinations are within the bound of the float64 pass") {
    RandomProblems problems(17), large(18, 200);
    for (int n = 0; n < 500; ++n) {
      CAPTURE(n);
      const Problem problem = n % 10 == 0 ? large.next() : problems.next();
      const Trace exact = pass(problem, Arithmetic::kFloat64), trace = pass(problem, Arithmetic::kFloat32);
      const Excess excess = compare(trace, exact);
      CHECK(excess.attn <= 1);
      CHECK(excess.out <= 1);
      CHECK(trace.keep.get() == exact.keep.get());
      for (std::size_t h = 0; h < exact.heads.size(); ++h) {
        CHECK(((exact.keep->array() != 0) || (trace.heads[h].attn->array() == 0)).all());
        const double scores = largest(*exact.heads[h].scores - *trace.heads[h].scores);
        CHECK(scores <= score_rounding(exact, static_cast<int>(h)) /
                            std::max(1e-6, std::abs(effective_scale(problem.options, exact.shapes.d_k))));
      }
    }
  }

  TEST_CASE("parts read one at a time have the bits of the whole") {
    RandomProblems problems(19, 90);
    for (int n = 0; n < 30; ++n) {
      const Trace trace = pass(problems.next(), Arithmetic::kFloat32);
      const Index rows = trace.shapes.nq, cols = trace.shapes.nk;
      const Rect rect = {rows / 3, cols / 4, rows - rows / 3, cols - cols / 4};
      for (const MatrixKind kind : {MatrixKind::kScores, MatrixKind::kScaled, MatrixKind::kAttn}) {
        Matrix part(rect.rows, rect.cols);
        trace.source({kind, 0})->read(rect, part);
        CHECK(part == trace.find({kind, 0})->block(rect.row, rect.col, rect.rows, rect.cols));
        Matrix reduced((rect.rows + 3) / 4, (rect.cols + 3) / 4), want = reduced;
        trace.source({kind, 0})->reduce(rect, 2, Reduction::kMean, reduced);
        DenseSource(*trace.find({kind, 0})).reduce(rect, 2, Reduction::kMean, want);
        CHECK(reduced == want);
      }
    }
  }

  TEST_CASE("threads change no bit, and a layer is projected in float32 too") {
    Problem problem = projected_problem();
    auto& source = std::get<ProjectedSource>(problem.source);
    source.x = random_matrix(300, 6, 3);
    ThreadPool pool(3);
    const Trace alone = pass(problem, Arithmetic::kFloat32), shared = pass(problem, Arithmetic::kFloat32, &pool);
    CHECK(alone.concat == shared.concat);
    CHECK(*alone.out == *shared.out);
    const Excess excess = compare(alone, pass(problem, Arithmetic::kFloat64));
    CHECK(excess.attn <= 4);  // Q and K themselves are rounded after products in float32
    CHECK(excess.out <= 4);
  }

  TEST_CASE("small problems are computed in float64, large ones in float32") {
    CHECK(run(random_problem(1, 1, 8, 8, 4, 4)).arithmetic == Arithmetic::kFloat64);
    CHECK(run(random_problem(2, 1, 400, 400, 64, 64)).arithmetic == Arithmetic::kFloat32);
  }
}

TEST_SUITE("update") {
  TEST_CASE("long random sequences of edits stay within the bound of one pass") {
    RandomProblems problems(23, 40);
    Editor editor(5);
    Index redone = 0, rows = 0;
    for (int n = 0; n < 40; ++n) {
      CAPTURE(n);
      Problem problem = problems.next();
      Trace trace = pass(problem, Arithmetic::kFloat32);
      for (int step = 0; step < 60; ++step) {
        CAPTURE(step);
        if (editor.below(3) != 0) editor.edit(problem);
        if (editor.below(3) == 0) editor.edit(problem.options, trace.shapes);
        if (editor.below(8) == 0) editor.toggle(problem.options, trace.shapes);
        UpdateReport report;
        trace = edited(std::move(trace), problem, &report);
        CHECK(!report.full);
        redone += report.redone_rows;
        rows += trace.shapes.heads * trace.shapes.nq;
        const Excess excess = compare(trace, pass(problem, Arithmetic::kFloat64));
        // Twice: a row is redone once half of what its rounding came from is gone.
        CHECK(excess.attn <= 2);
        CHECK(excess.out <= 2);
      }
    }
    CHECK(redone < rows / 2);
  }

  TEST_CASE("five thousand edits leave no drift") {
    Problem problem = random_problem(2, 1, 24, 30, 6, 5);
    problem.options.causal = true;
    problem.options.sink = {0.5f, -1};
    Editor editor(6);
    Trace trace = pass(problem, Arithmetic::kFloat32);
    for (int step = 0; step < 5000; ++step) {
      editor.edit(problem);
      trace = edited(std::move(trace), problem);
      if (step % 50 != 0) continue;
      CAPTURE(step);
      const Trace exact = pass(problem, Arithmetic::kFloat64);
      const Excess excess = compare(trace, exact);
      CHECK(excess.attn <= 2);
      CHECK(excess.out <= 2);
      for (Index row = 0; row < 24; ++row) {
        const double want = exact.heads[1].rows[static_cast<std::size_t>(row)].sink;
        CHECK(trace.heads[1].rows[static_cast<std::size_t>(row)].sink ==
              doctest::Approx(want).epsilon(2 * score_rounding(exact, 1)));
      }
    }
  }

  TEST_CASE("X, the weights and their biases") {
    Problem problem = projected_problem();
    std::get<ProjectedSource>(problem.source).x = random_matrix(40, 6, 3);
    Editor editor(7);
    Trace trace = pass(problem, Arithmetic::kFloat32);
    for (int step = 0; step < 300; ++step) {
      CAPTURE(step);
      editor.edit(problem);
      if (step % 7 == 0) editor.edit(*problem.wo);
      UpdateReport report;
      trace = edited(std::move(trace), problem, &report);
      CHECK(!report.full);
      const Trace fresh = pass(problem, Arithmetic::kFloat32);
      for (std::size_t h = 0; h < 4; ++h) CHECK(trace.q[h].get() == fresh.q[h].get());
      CHECK(trace.k[1].get() == fresh.k[1].get());
      const Excess excess = compare(trace, pass(problem, Arithmetic::kFloat64));
      CHECK(excess.attn <= 8);  // see the layer above, times two
      CHECK(excess.out <= 8);
    }
  }

  TEST_CASE("tokens that come and go are full passes in the memory of the old one") {
    Problem problem = random_problem(2, 2, 50, 50, 8, 8);
    Editor editor(8);
    Trace trace = pass(problem, Arithmetic::kFloat32);
    for (const Index tokens : {51, 50, 60, 20}) {
      resize_tokens(problem, tokens, editor);
      editor.toggle(problem.options, trace.shapes);
      UpdateReport report;
      trace = edited(std::move(trace), problem, &report);
      CHECK(report.full);
      CHECK(trace.concat == pass(problem, Arithmetic::kFloat32).concat);
    }
  }

  TEST_CASE("an edit of one head leaves the others alone, and one of Q redoes its row") {
    Problem problem = random_problem(4, 2, 30, 30, 8, 8);
    Trace trace = pass(problem, Arithmetic::kFloat32);
    source_of(problem).q[2].edit()(7, 1) += 1;
    UpdateReport report;
    trace = edited(std::move(trace), problem, &report);
    CHECK(report.same == std::vector<bool>{true, true, false, true});
    CHECK(report.redone_rows == 1);
    CHECK(trace.concat == pass(problem, Arithmetic::kFloat32).concat);

    source_of(problem).v[0].edit()(3, 2) = 5;
    trace = edited(std::move(trace), problem, &report);
    CHECK(report.same == std::vector<bool>{false, false, true, true});
    CHECK(report.redone_rows == 0);

    trace = edited(std::move(trace), problem, &report);
    CHECK(report.same == std::vector<bool>(4, true));
  }

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
    CHECK((trace.concat.array() == 0).all());
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

  TEST_CASE("NaN and infinities come and go without a trace") {
    Problem problem = random_problem(2, 1, 20, 20, 4, 4);
    problem.options.causal = true;
    Trace trace = pass(problem, Arithmetic::kFloat32);
    const Matrix before = trace.concat;
    DirectSource& source = source_of(problem);
    const DirectSource clean = source;
    for (SharedMatrix* matrix : {&source.q[1], &source.k[0], &source.v[0]}) {
      for (const float value : {kNan, kInf, -kInf}) {
        matrix->edit()(6, 2) = value;
        trace = edited(std::move(trace), problem);
        const Trace fresh = pass(problem, Arithmetic::kFloat32);
        for (Index i = 0; i < fresh.concat.size(); ++i) {
          const float got = trace.concat.data()[i], want = fresh.concat.data()[i];
          CHECK(std::isnan(got) == std::isnan(want));
          if (std::isinf(want)) CHECK(got == want);
          if (std::isfinite(want)) CHECK(got == doctest::Approx(want).epsilon(1e-5));
        }
        for (std::size_t h = 0; h < 2; ++h) {
          CHECK((trace.heads[h].attn->array().isNaN() == fresh.heads[h].attn->array().isNaN()).all());
        }
      }
      source = clean;
      trace = edited(std::move(trace), problem);
      check_near(trace.concat, before, 1e-6f);
    }
  }

  TEST_CASE("a stopped edit says so") {
    Problem problem = random_problem(2, 2, 50, 50, 8, 8);
    Trace trace = pass(problem, Arithmetic::kFloat32);
    source_of(problem).q[0].edit()(0, 0) = 1;
    StopFlag stop = true;
    const Result<Trace> stopped =
        update(std::move(trace), problem, {.arithmetic = Arithmetic::kFloat32, .stop = &stop});
    REQUIRE(!stopped.ok());
    CHECK(stopped.error().code == ErrorCode::kCancelled);
  }
}
