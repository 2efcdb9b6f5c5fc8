// What the window shows of a large session before anything of it is computed.
#include <doctest/doctest.h>

#include "app/engine/pending.h"
#include "core/session/tokenizer.h"
#include "tests/app/harness.h"

using namespace qkv;

namespace {

constexpr Index kProjectedTokens = 2048;

// So large that its first result takes many frames; causal, so that there is a mask.
Session large_session(bool projected) {
  constexpr Index kModel = 1024;
  const Index tokens = projected ? kProjectedTokens : 2 * kProjectedTokens;
  Session session;
  session.title = "large";
  for (Index i = 0; i < tokens; ++i) session.tokens.push_back("t" + std::to_string(i));
  if (projected) {
    ProjectedSource source;
    source.x = random_matrix(1, tokens, kModel);
    source.wq = random_matrix(2, kModel, kModel);
    source.wk = random_matrix(3, kModel, kModel);
    source.wv = random_matrix(4, kModel, kModel);
    source.heads = source.kv_heads = 8;
    session.problem.source = source;
  } else {
    DirectSource source;
    for (std::uint64_t head = 0; head < 4; ++head) {
      source.q.emplace_back(random_matrix(1 + head, tokens, 64));
      source.k.emplace_back(random_matrix(21 + head, tokens, 64));
      source.v.emplace_back(random_matrix(41 + head, tokens, 64));
    }
    session.problem.source = source;
  }
  session.problem.options.causal = true;
  session.problem.options.alibi = true;
  return session;
}

// That nothing on the screen is of another session.
void check_is_of(const App& app, const Session& session) {
  CHECK(app.trace()->shapes == check_session(session).value());
  CHECK(app.trace()->problem.options == session.problem.options);
}

}  // namespace

TEST_CASE("pending: the inputs of a new session are there at once, its results say that they are computed") {
  const Session session = large_session(false);
  Harness h;
  h.app().open(session, {});
  check_is_of(h.app(), session);
  h.frames(1);
  REQUIRE(h.app().trace()->find({MatrixKind::kHeadsOut, 0}) == nullptr);
  for (const std::string input : {"matrix/q/1", "matrix/k/1", "matrix/v/1"}) CHECK_MESSAGE(h.has(input), input);
  for (const std::string result : {"scores", "alibi", "scaled", "keep", "attn", "heads_out"}) {
    CHECK_MESSAGE(h.has("pending/matrix/" + result + "/1"), result);
    CHECK_MESSAGE(!h.has("matrix/" + result + "/1"), result);
  }
  h.app().wait_for_results();
  h.frames(2);
  check_is_of(h.app(), session);
  CHECK(h.has("matrix/heads_out/1"));
  CHECK_FALSE(h.has("pending/matrix/heads_out/1"));
}

TEST_CASE("pending: every tab, cell and command copes with a session of which nothing is computed") {
  const Session session = large_session(true);
  Harness h;
  h.app().open(session, {});
  h.app().open(worked_example(), {});  // computed at once, whatever is still going on
  CHECK(h.app().trace()->shapes == check_session(worked_example()).value());
  h.app().open(session, {});
  for (const char* tab : {"tab/heads", "tab/concat", "tab/projection", "tab/head"}) {
    h.click(tab);
    check_is_of(h.app(), session);
  }
  h.app().wait_for_results();
  h.frames(1);
  h.app().wait_for_results();
  check_is_of(h.app(), session);
  CHECK(h.app().trace()->find({MatrixKind::kHeadsOut, 7}) != nullptr);
}

TEST_CASE("pending: a dialog of the session before is told so when it asks for a picture") {
  Harness h;
  h.key(Key::kE, true);
  h.frames(3);
  REQUIRE(h.has("export/view"));
  h.app().open(large_session(false), {});  // as a file that is dropped on the window
  h.frames(3);
  CHECK(h.has("export/view"));
  h.app().wait_for_results();
  h.frames(2);
  CHECK(h.has("export/view"));
}

TEST_CASE("pending: what there is of a session before its first result") {
  const std::shared_ptr<const Computed> large = pending(large_session(true));
  CHECK(is_pending(*large));
  CHECK(large->digest.hidden == kProjectedTokens * (kProjectedTokens - 1) / 2);
  CHECK(large->trace.find({MatrixKind::kX, 0}) != nullptr);
  CHECK(large->trace.find({MatrixKind::kQ, 0}) == nullptr);
  CHECK(large->digest.extents[static_cast<std::size_t>(ScaleGroup::kInput)].count > 0);

  Session weights;
  weights.tokens = {"a", "b"};
  weights.problem.source = WeightsSource{{random_matrix(1, 2, 2)}};
  const std::shared_ptr<const Computed> given = pending(weights);
  REQUIRE(given->trace.find({MatrixKind::kAttn, 0}) != nullptr);
  CHECK(given->trace.find({MatrixKind::kAttn, 0})->data() ==
        std::get<WeightsSource>(weights.problem.source).attn[0]->data());

  Engine engine({});
  engine.request(worked_example());
  engine.wait();
  CHECK_FALSE(is_pending(*engine.take_result()));
  engine.request(large_session(false));
  engine.forget();
  engine.wait();
  CHECK(engine.take_result() == nullptr);
  CHECK_FALSE(engine.take_error());
}
