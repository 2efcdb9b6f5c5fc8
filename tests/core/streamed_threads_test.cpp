// A streamed head while it is being computed: progress, stopping, and readers in other threads.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "tests/core/streamed_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

Problem causal_problem(Index n, unsigned seed) {
  Problem problem = random_problem(1, 1, n, n, 8, 8, seed);
  problem.options.causal = true;
  return problem;
}

}  // namespace

TEST_SUITE("streamed head at work") {
  TEST_CASE("it can be read before anything is computed") {
    const Problem problem = causal_problem(150, 1);
    const Held want = held(problem, 0);
    const auto head = streamed(problem, 0, true, 10);
    CHECK(head->progress() == 0);
    CHECK(head->generation() == 0);
    CHECK(!head->has_overview());
    CHECK(same_bits(read_all(*streamed_source(head, MatrixKind::kScores)), want.scores));
    CHECK(same_bits(read_all(*streamed_source(head, MatrixKind::kAttn)), want.attn));
    CHECK(same_bits(reduced(*streamed_source(head, MatrixKind::kKeep), 0, Reduction::kMax), want.keep));
    const auto source = streamed_source(head, MatrixKind::kAttn);
    CHECK(reduced(*source, 4, Reduction::kMean).array().isNaN().all());
    CHECK(read_all(*streamed_source(head, MatrixKind::kHeadsOut)).array().isNaN().all());
    CHECK(streamed_source(head, MatrixKind::kWo) == nullptr);
    CHECK(streamed_source(streamed(problem, 0, false), MatrixKind::kHeadsOut) == nullptr);
  }

  TEST_CASE("stopped at once it does nothing; it goes on where it was stopped") {
    const auto head = streamed(causal_problem(300, 2), 0, true, 16);
    ThreadPool pool(2);
    StopFlag stop = true;
    CHECK(!head->compute(pool, &stop));
    CHECK(head->progress() == 0);
    // Stops it at a third, each time from another thread.
    std::atomic<bool> ended = false;
    stop = false;
    std::thread stopper([&] {
      while (!ended && head->progress() < 0.33) std::this_thread::yield();
      stop = true;
    });
    const bool complete = head->compute(pool, &stop);
    ended = true;
    stopper.join();
    CHECK(complete == (head->progress() == 1));
    const double before = head->progress();
    CHECK(before > 0);
    REQUIRE(head->compute(pool));
    CHECK(head->progress() == 1);
    const std::uint64_t generation = head->generation();
    REQUIRE(head->compute(pool));  // nothing left
    CHECK(head->generation() == generation);
    CHECK(same_bits(*head->out(), held(causal_problem(300, 2), 0).out));
  }

  TEST_CASE("one thread or many: the same bits") {
    const Problem problem = causal_problem(260, 3);
    ThreadPool one(1), many(5);
    const auto a = streamed(problem, 0, true, 16), b = streamed(problem, 0, true, 16);
    REQUIRE(a->compute(one));
    REQUIRE(b->compute(many));
    CHECK(same_bits(*a->out(), *b->out()));
    for (const MatrixKind kind : {MatrixKind::kScores, MatrixKind::kScaled, MatrixKind::kAttn}) {
      for (const Reduction how : {Reduction::kMean, Reduction::kMax}) {
        CHECK(same_bits(reduced(*streamed_source(a, kind), 5, how), reduced(*streamed_source(b, kind), 5, how)));
      }
    }
  }

  TEST_CASE("the coarse picture has every visible block and is near the exact one") {
    // Neighbouring queries alike, so that one row of a block tells about the others.
    Problem problem = random_problem(1, 1, 256, 256, 4, 4, 4);
    problem.options.causal = true;
    problem.options.window = 100;
    source_of(problem).q[0] = SharedMatrix(Matrix(256, 4));
    Matrix& q = source_of(problem).q[0].edit();
    for (Index r = 0; r < 256; ++r) q.row(r).setConstant(std::sin(0.01f * static_cast<float>(r)));
    const auto head = streamed(problem, 0, false, 32);
    ThreadPool pool(1);
    StopFlag stop = false;
    std::thread reader([&] {
      while (!head->has_overview()) std::this_thread::yield();
      stop = true;
    });
    const bool complete = head->compute(pool, &stop);
    reader.join();
    CHECK(complete == (head->progress() == 1));
    const Matrix coarse = reduced(*streamed_source(head, MatrixKind::kScores), 3, Reduction::kMean);
    REQUIRE(head->compute(pool));
    const Matrix exact = reduced(*streamed_source(head, MatrixKind::kScores), 3, Reduction::kMean);
    CHECK((coarse.array().isNaN() == exact.array().isNaN()).all());
    // q differs by at most 0.01 · 8 within a block, k·1 is a sum of four normals: at most about 8.
    for (Index i = 0; i < coarse.size(); ++i) {
      const float a = coarse.data()[i], b = exact.data()[i];
      CHECK((std::isnan(a) || std::abs(a - b) < 4));
    }
  }

  TEST_CASE("readers in other threads see progress that never falls and cells that are always exact") {
    const Problem problem = causal_problem(400, 5);
    const Held want = held(problem, 0);
    const auto head = streamed(problem, 0, true, 50);
    std::atomic<bool> done = false;
    std::atomic<int> wrong = 0, readings = 0;
    const auto reader = [&](unsigned seed) {
      std::mt19937 random(seed);
      double progress = 0;
      std::uint64_t generation = 0;
      do {
        const auto below = [&](Index limit) { return static_cast<Index>(random() % static_cast<unsigned>(limit)); };
        const Index row = below(400), col = below(400);
        const Rect rect = {row, col, 1 + below(std::min<Index>(400 - row, 40)),
                           1 + below(std::min<Index>(400 - col, 40))};
        Matrix cells(rect.rows, rect.cols);
        for (const MatrixKind kind : {MatrixKind::kScores, MatrixKind::kAttn}) {
          streamed_source(head, kind)->read(rect, cells);
          if (!same_bits(cells, want.of(kind).block(rect.row, rect.col, rect.rows, rect.cols))) ++wrong;
        }
        streamed_source(head, MatrixKind::kHeadsOut)->read({row, 0, 1, 8}, cells = Matrix(1, 8));
        if (!cells.array().isNaN().all() && !same_bits(cells, want.out.row(row))) ++wrong;
        const Matrix picture = reduced(*streamed_source(head, MatrixKind::kAttn), 4, Reduction::kMax);
        if ((picture.array() > 1).any()) ++wrong;
        if (head->progress() < progress || head->progress() > 1 || head->generation() < generation) ++wrong;
        if (head->extent(MatrixKind::kAttn).high > 1) ++wrong;
        progress = head->progress();
        generation = head->generation();
        ++readings;
      } while (!done);
    };
    std::thread first(reader, 1U), second(reader, 2U);
    ThreadPool pool(2);
    CHECK(head->compute(pool));
    done = true;
    first.join();
    second.join();
    CHECK(wrong == 0);
    CHECK(readings > 0);
    CHECK(same_bits(*head->out(), want.out));
  }
}
