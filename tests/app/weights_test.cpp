// Sessions of attention weights alone: every tab, panel and menu, driven frame by frame.
#include <doctest/doctest.h>

#include <limits>

#include "tests/app/harness.h"
#include "tests/core/weights_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

// Everything that a person can look at, with every command on the way.
void walk(Harness& h) {
  for (const char* tab : {"tab/head", "tab/heads"}) {
    h.click(tab);
    CHECK(h.has("matrix/attn/1"));
    CHECK_FALSE(h.has("tab/concat"));
    h.point("matrix/attn/1");
    h.wheel(2);
    h.wheel(-2);
    h.point("lens/none");
    for (const Key key : {Key::kPageDown, Key::kPageUp}) h.key(key);
  }
  h.click("tab/head");
  CHECK_FALSE(h.has("matrix/q/1"));
  CHECK(h.has("source/given"));
  CHECK_FALSE(h.has("switch/causal"));
  h.click("matrix/attn/1/cell/0,0");
  h.click("matrix/attn/1/cell/0,0", 1);
  CHECK(h.has("cell-menu/zeros"));
  CHECK_FALSE(h.has("cell-menu/enlarge"));
  h.key(Key::kEscape);
  h.key(Key::kM, true);
  h.key(Key::kC, true);
  h.key(Key::kV, true);
  h.key(Key::kA, true);
  h.key(Key::kE, true);
  h.frames(3);
  h.key(Key::kEscape);
  h.frames(3);
  for (const Tab tab : {Tab::kConcat, Tab::kProjection}) {
    Session session = h.app().session();
    session.view.tab = tab;
    session.view.lens = Lens::kGradient;
    h.app().open(session, {});
    h.frames(3);
    CHECK(h.has("matrix/attn/1"));
    CHECK(h.app().lens() == nullptr);
  }
}

void open(Harness& h, const Session& session) {
  h.app().open(session, {});
  h.frames(3);
}

}  // namespace

TEST_CASE("weights alone: the whole window, whatever their shape") {
  struct Shape {
    int heads;
    Index nq, nk;
  };
  for (const Shape& shape : {Shape{1, 3, 3}, Shape{12, 9, 9}, Shape{2, 4, 7}, Shape{1, 7, 2}, Shape{1, 1, 1}}) {
    CAPTURE(shape.heads);
    CAPTURE(shape.nk);
    Harness h;
    open(h, given_session(shape.heads, shape.nq, shape.nk));
    walk(h);
  }
}

TEST_CASE("weights alone: NaN, infinities and rows that are no distribution") {
  Harness h;
  Session session = given_session(2, 3, 3);
  Matrix& weights = std::get<WeightsSource>(session.problem.source).attn[0].edit();
  weights(0, 0) = std::numeric_limits<float>::quiet_NaN();
  weights(1, 0) = std::numeric_limits<float>::infinity();
  weights(2, 0) = -3;
  open(h, session);
  for (const char* cell : {"matrix/attn/1/cell/0,0", "matrix/attn/1/cell/1,0", "matrix/attn/1/cell/2,0"}) h.point(cell);
  walk(h);
  weights.setConstant(std::numeric_limits<float>::quiet_NaN());
  open(h, session);
  walk(h);
}

TEST_CASE("weights alone: many tokens, and a tall matrix, are drawn") {
  Harness h;
  open(h, given_session(1, 26, 26));
  h.point("matrix/attn/1");
  Session tall = given_session(1, 2, 3);
  tall.tokens.assign(2000, "long token");
  tall.problem.source = WeightsSource{{given_matrix(0, 2000, 3)}};
  open(h, tall);
  h.point("matrix/attn/1");
  h.click("tab/heads");
  CHECK(h.has("head-card/1"));
}

TEST_CASE("weights alone: a cell is typed, pasted, filled and taken back") {
  Harness h;
  open(h, given_session(2, 3, 3));
  const float before = h.trace(MatrixKind::kAttn)(1, 1);
  h.click("matrix/attn/1/cell/1,1");
  h.type("0.75");
  h.key(Key::kEnter);
  CHECK(h.trace(MatrixKind::kAttn)(1, 1) == 0.75f);
  h.key(Key::kZ, true);
  CHECK(h.trace(MatrixKind::kAttn)(1, 1) == before);
  h.click("matrix/attn/1/cell/0,0");
  h.set_clipboard("1\t0\n0\t1");
  h.key(Key::kV, true);
  CHECK(h.trace(MatrixKind::kAttn).topLeftCorner(2, 2) == Matrix(Matrix::Identity(2, 2)));
  h.click("matrix/attn/1/cell/2,2", 1);
  h.click("cell-menu/zeros");
  CHECK(h.trace(MatrixKind::kAttn)(2, 2) == 0);
  h.drag("matrix/attn/1/cell/2,2", {40, 0});
  CHECK(h.trace(MatrixKind::kAttn)(2, 2) != 0);
}

TEST_CASE("weights alone: typing tokens names rows, and heads are added and taken away") {
  Harness h;
  open(h, given_session(1, 3, 3));
  const Matrix weights = h.trace(MatrixKind::kAttn);
  h.click("tokens/text");
  h.key(Key::kA, true);
  h.type("the cat sleeps");
  CHECK(h.app().session().tokens == std::vector<std::string>{"the", "cat", "sleeps"});
  CHECK(h.trace(MatrixKind::kAttn) == weights);
  h.click("field/heads");
  h.key(Key::kA, true);
  h.type("2");
  h.key(Key::kEnter);
  CHECK(h.trace(MatrixKind::kAttn, 1).isZero(0));
  h.click("switch/cross");
  CHECK(h.app().session().key_tokens);
  h.click("tab/heads");
  h.click("head-card/2");
  CHECK(h.has("matrix/attn/2"));
}

TEST_CASE("weights alone: a large session with Q, K and V follows, and goes") {
  Harness h;
  open(h, given_session(3, 5, 5));
  h.click("matrix/attn/1/cell/1,1");
  h.app().open(worked_example(), {});
  h.frames(3);
  CHECK(h.has("matrix/q/1"));
  CHECK(h.has("tab/concat"));
  h.click("tab/concat");
  open(h, given_session(3, 5, 5));
  CHECK(h.app().session().view.tab == Tab::kHead);
  CHECK(h.has("matrix/attn/1"));
}
