// The float32 path against the float64 one, and edits of it against full passes: over long random sequences, with all
// options.
#include "tests/core/update_support.h"

using namespace qkv;
using namespace qkv::test;

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
        for (Index i = 0; i < fresh.concat->size(); ++i) {
          const float got = trace.concat->data()[i], want = fresh.concat->data()[i];
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

  TEST_CASE("values near the ends of float32 do not drift") {
    // Subnormal ones, whose every rounding is as large as the last; ones of few digits to spare; the largest.
    for (const float size : {1e-40f, 1e-36f, 1e-30f, 3e38f}) {
      CAPTURE(size);
      Problem problem = random_problem(1, 1, 12, 12, 4, 6);
      Matrix& first = source_of(problem).v[0].edit();
      first = (first / first.cwiseAbs().maxCoeff() * size).eval();
      Trace trace = pass(problem, Arithmetic::kFloat32);
      std::mt19937 random(5);
      std::uniform_real_distribution<float> value(-1, 1);
      for (int n = 0; n < 600; ++n) {
        source_of(problem).v[0].edit()(static_cast<Index>(random() % 12), static_cast<Index>(random() % 6)) =
            size * value(random);
        trace = edited(std::move(trace), problem);
      }
      const Trace exact = pass(problem, Arithmetic::kFloat64);
      const double off = (trace.concat->cast<double>() - exact.concat->cast<double>()).cwiseAbs().maxCoeff();
      CHECK(off <= 4 * std::max(0x1p-149, 0x1p-24 * static_cast<double>(size)));
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
