// Traces whose N² matrices are not held, against those that hold them.
#include <doctest/doctest.h>

#include <thread>

#include "core/attention/explain.h"
#include "core/attention/streamed_pass.h"
#include "tests/core/streamed_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

Trace pass(const Problem& problem, double most_held_bytes) {
  Result<Trace> trace = forward(problem, {.arithmetic = Arithmetic::kFloat32, .most_held_bytes = most_held_bytes});
  REQUIRE(trace.ok());
  return std::move(trace).value();
}

Matrix cells(const Trace& trace, MatrixId id) {
  const auto source = trace.source(id);
  REQUIRE(source);
  return read_all(*source);
}

}  // namespace

TEST_SUITE("streamed trace") {
  TEST_CASE("it has what the held one has, bit for bit, but no N² matrix") {
    RandomProblems problems(21, 40);
    for (int n = 0; n < 60; ++n) {
      CAPTURE(n);
      Problem problem = problems.next();
      const Shapes s = check_shapes(problem).value();
      if (n % 2 == 0) problem.wo = random_matrix(s.heads * s.d_v, 5, 1);
      const Trace held = pass(problem, 1e18), streamed = pass(problem, 0);
      CHECK(held.streams.empty());
      REQUIRE(static_cast<int>(streamed.streams.size()) == s.heads);
      for (int head = 0; head < s.heads; ++head) {
        for (const MatrixKind kind : {MatrixKind::kScores, MatrixKind::kScaled, MatrixKind::kAttn}) {
          CAPTURE(file_key(kind));
          CHECK(streamed.find({kind, head}) == nullptr);
          CHECK(same_bits(cells(streamed, {kind, head}), cells(held, {kind, head})));
        }
        const auto h = static_cast<std::size_t>(head);
        CHECK(same_bits(streamed.heads[h].out, held.heads[h].out));
        for (std::size_t row = 0; row < held.heads[h].rows.size(); ++row) {
          const RowStats &a = streamed.heads[h].rows[row], &b = held.heads[h].rows[row];
          CHECK((a.max == b.max && a.denominator == b.denominator && a.visible == b.visible && a.sink == b.sink));
        }
      }
      CHECK(streamed.find({MatrixKind::kKeep, 0}) == nullptr);
      CHECK(same_bits(cells(streamed, {MatrixKind::kKeep, 0}), cells(held, {MatrixKind::kKeep, 0})));
      CHECK(same_bits(streamed.concat, held.concat));
      CHECK(streamed.out.has_value() == held.out.has_value());
      if (held.out) CHECK(same_bits(*streamed.out, *held.out));
      CHECK(count_hidden(streamed) == count_hidden(held));
    }
  }

  TEST_CASE("every cell is explained as in the held one") {
    RandomProblems problems(22, 20);
    for (int n = 0; n < 40; ++n) {
      const Problem problem = problems.next();
      const Trace held = pass(problem, 1e18), streamed = pass(problem, 0);
      const Index row = n % held.shapes.nq, key = n % held.shapes.nk, col = n % held.shapes.d_v;
      for (const MatrixKind kind : {MatrixKind::kScores, MatrixKind::kScaled, MatrixKind::kKeep, MatrixKind::kAttn,
                                    MatrixKind::kHeadsOut, MatrixKind::kConcat}) {
        const Index at = row_axis(kind) == Axis::kQueries && col_axis(kind) == Axis::kKeys ? key : col;
        const auto a = explain(streamed, {kind, 0}, row, at), b = explain(held, {kind, 0}, row, at);
        REQUIRE((a && b));
        CHECK(a->value == b->value);
        CHECK(a->stored == b->stored);
        CHECK(a->mask == b->mask);
        CHECK(a->dead_row == b->dead_row);
        CHECK(a->terms.size() == b->terms.size());
        CHECK(a->softmax.size() == b->softmax.size());
      }
      CHECK(!explain(streamed, {MatrixKind::kScores, 0}, held.shapes.nq, 0));
    }
  }

  TEST_CASE("it can be looked at before it is computed, and goes on where it was stopped") {
    Problem problem = random_problem(2, 1, 90, 90, 4, 3);
    problem.options.causal = true;
    problem.wo = random_matrix(6, 4, 9);
    const Shapes shapes = check_shapes(problem).value();
    const Trace held = pass(problem, 1e18);
    Result<Trace> begun = begin_streamed(problem, shapes, {});
    REQUIRE(begun.ok());
    const Trace& trace = begun.value();
    CHECK(streamed_progress(trace) == 0);
    CHECK(trace.find({MatrixKind::kHeadsOut, 0}) == nullptr);
    CHECK(trace.find({MatrixKind::kConcat, 0}) == nullptr);
    CHECK(trace.find({MatrixKind::kOut, 0}) == nullptr);
    CHECK(trace.source({MatrixKind::kConcat, 0}) == nullptr);
    CHECK(cells(trace, {MatrixKind::kHeadsOut, 1}).array().isNaN().all());
    CHECK(same_bits(cells(trace, {MatrixKind::kAttn, 1}), cells(held, {MatrixKind::kAttn, 1})));
    CHECK(find_warnings(trace).nan_outputs == 0);
    CHECK(count_hidden(trace) == 90 * 89 / 2);
    ThreadPool pool(2);
    StopFlag stop = true;
    CHECK(!refine_streamed(trace, pool, &stop));
    CHECK(streamed_progress(trace) == 0);
    stop = false;
    CHECK(sample_streamed(trace, pool, &stop));
    CHECK(refine_streamed(trace, pool, &stop, 1));
    CHECK(streamed_progress(trace) == 1);
    const Result<Trace> finished = finish_streamed(trace, {});
    REQUIRE(finished.ok());
    CHECK(same_bits(*finished.value().find({MatrixKind::kHeadsOut, 1}), held.heads[1].out));
    CHECK(same_bits(*finished.value().out, *held.out));
  }

  TEST_CASE("a projected source streams too; a stopped pass says so; bytes decide") {
    const Problem problem = projected_problem();
    const Trace held = pass(problem, 1e18), streamed = pass(problem, 0);
    CHECK(same_bits(*streamed.out, *held.out));
    CHECK(same_bits(cells(streamed, {MatrixKind::kAttn, 3}), cells(held, {MatrixKind::kAttn, 3})));
    StopFlag stop = true;
    const Result<Trace> stopped = forward(problem, {.stop = &stop, .most_held_bytes = 0});
    REQUIRE(!stopped.ok());
    CHECK(stopped.error().code == ErrorCode::kCancelled);
    const Shapes shapes = check_shapes(problem).value();
    CHECK(held_bytes(shapes) == 4 * 5 * 5 * 12);
    CHECK(pass(problem, held_bytes(shapes)).streams.empty());
    CHECK(!pass(problem, held_bytes(shapes) - 1).streams.empty());
  }
}
