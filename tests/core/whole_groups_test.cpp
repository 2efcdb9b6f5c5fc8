// Passes that hand a whole group of heads to one thread: see computes_whole_groups.
#include "core/attention/kernels/head_kernel.h"
#include "tests/core/update_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

// Large enough to be shared out, small enough to be shared out by groups.
Problem shared_problem() {
  Problem problem = random_problem(8, 4, 160, 190, 16, 12);
  problem.options.causal = true;
  problem.options.sink.assign(8, 0.5f);
  return problem;
}

void check_same(const Trace& got, const Trace& want) {
  CHECK(got.concat == want.concat);
  for (std::size_t h = 0; h < want.heads.size(); ++h) {
    CHECK(*got.heads[h].scores == *want.heads[h].scores);
    CHECK(*got.heads[h].attn == *want.heads[h].attn);
  }
}

bool goes_by_groups(const Problem& problem, int threads) {
  const Shapes shapes = check_shapes(problem).value();
  return computes_whole_groups(shapes.kv_heads, estimated_flops(shapes) / shapes.kv_heads, threads);
}

}  // namespace

TEST_SUITE("whole groups") {
  TEST_CASE("have the bits of rows shared out one block at a time") {
    const Problem problem = shared_problem();
    ThreadPool three(3);
    REQUIRE(!goes_by_groups(problem, three.threads()));
    const Trace blocks = pass(problem, Arithmetic::kFloat32, &three);
    for (const int threads : {1, 2, 4}) {
      CAPTURE(threads);
      ThreadPool pool(threads);
      REQUIRE(goes_by_groups(problem, threads));
      check_same(pass(problem, Arithmetic::kFloat32, &pool), blocks);
    }
  }

  TEST_CASE("are computed again in the memory of the pass before, and in memory of their own where that is held") {
    Problem problem = shared_problem();
    Editor editor(7);
    ThreadPool pool(2);
    Trace trace = pass(problem, Arithmetic::kFloat32, &pool);
    std::optional<Trace> held;
    for (const Index tokens : {170, 150, 190, 180}) {
      CAPTURE(tokens);
      resize_tokens(problem, tokens, editor);
      if (tokens == 190) held = trace;
      const Matrix before = *trace.heads[3].attn;
      UpdateReport report;
      trace = edited(std::move(trace), problem, &report, &pool);
      CHECK(report.full);
      check_same(trace, pass(problem, Arithmetic::kFloat32));
      if (tokens == 190) CHECK(*held->heads[3].attn == before);
    }
  }

  TEST_CASE("stop before one of them when told to") {
    const Problem problem = shared_problem();
    ThreadPool pool(2);
    const StopFlag stop = true;
    const Result<Trace> trace = forward(problem, {.arithmetic = Arithmetic::kFloat32, .pool = &pool, .stop = &stop});
    REQUIRE(!trace.ok());
    CHECK(trace.error().code == ErrorCode::kCancelled);
  }
}
