// The window on a session with every variant of attention: what it says of them, and that its controls keep them.
#include <doctest/doctest.h>

#include "app/engine/digest.h"
#include "app/panels/inspector_words.h"
#include "tests/app/harness.h"

using namespace qkv;

namespace {

Session variants_session() {
  Session session = worked_example();
  auto& source = std::get<DirectSource>(session.problem.source);
  source.q[0] = random_matrix(1, 3, 4);
  source.k[0] = random_matrix(2, 3, 4);
  session.problem.options = {.causal = true,
                             .rope = Rope{100, RopeStyle::kHalf},
                             .softcap = 3.0f,
                             .alibi = true,
                             .bias = SharedMatrix(random_matrix(3, 3, 3)),
                             .window = 2,
                             .sink = {0.5f}};
  return session;
}

Trace run(const Session& session) {
  Result<Trace> trace = forward(session.problem);
  REQUIRE(trace.ok());
  return std::move(trace).value();
}

}  // namespace

TEST_CASE("rows that a sink takes part of are held to what they should sum to") {
  const Trace trace = run(variants_session());
  CHECK(trace.heads[0].attn->row(2).sum() < 0.9f);
  CHECK(digest(trace).worst_row_sum <= 1e-6);
  Trace wrong = trace;
  Matrix off = *wrong.heads[0].attn;
  off(2, 2) += 0.01f;
  wrong.heads[0].attn = off;
  CHECK(digest(wrong).worst_row_sum > 0.009);
}

TEST_CASE("a cell says that the window hides it, and what turns and takes part") {
  const Session session = variants_session();
  const Trace trace = run(session);
  const auto sentence = [&](MatrixKind kind, Index row, Index col) {
    const auto cell = explain(trace, {kind, 0}, row, col);
    REQUIRE(cell.has_value());
    return cell_sentence(*cell, session, TokenStyle::kPlain);
  };
  CHECK(sentence(MatrixKind::kKeep, 2, 0) == "老鼠 may not look at 貓: it is outside the window.");
  CHECK(sentence(MatrixKind::kKeep, 0, 1) == "貓 may not look at 追: it comes later.");
  CHECK(sentence(MatrixKind::kScores, 1, 0).ends_with("each turned by its position."));
  CHECK(sentence(MatrixKind::kAttn, 1, 0).ends_with("the sink takes its part without a value."));
}

TEST_CASE("every cell can be pointed at, and the controls keep the options that they do not set") {
  Harness h;
  h.app().open(variants_session(), {});
  h.frames(2);
  for (const std::string matrix : {"scores", "scaled", "keep", "attn"}) {
    for (const std::string cell : {"0,0", "2,0", "1,1"}) h.point("matrix/" + matrix + "/1/cell/" + cell);
  }
  AttentionOptions want = h.app().session().problem.options;
  h.click("switch/causal");
  want.causal = false;
  CHECK(h.app().session().problem.options == want);
  h.click("field/d-k");
  h.key(Key::kA, true);
  h.type("5");
  h.key(Key::kEnter);
  CHECK(h.app().trace()->shapes.d_k == 4);
  CHECK(h.app().session().problem.options == want);
}
