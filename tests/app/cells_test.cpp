// Cells: seen, chosen, typed over, scrubbed, filled, copied and pasted.
#include <doctest/doctest.h>

#include "tests/app/harness.h"

using namespace qkv;

TEST_CASE("the worked example shows its numbers") {
  Harness h;
  CHECK(h.trace(MatrixKind::kScores)(1, 0) == 5.0f);
  CHECK(h.trace(MatrixKind::kAttn)(1, 0) == doctest::Approx(0.6134).epsilon(1e-4));
  for (const char* name : {"matrix/q/1", "matrix/k/1", "matrix/v/1", "matrix/scores/1", "matrix/scaled/1",
                           "matrix/attn/1", "matrix/heads_out/1"})
    CHECK(h.has(name));
}

TEST_CASE("rows of queries line up, and factors stand beside and above their product") {
  Harness h;
  const auto rect = [&](const char* name) { return *h.app().widgets().find(name); };
  const auto q = rect("matrix/q/1"), k = rect("matrix/k/1"), s = rect("matrix/scores/1"), a = rect("matrix/attn/1");
  const auto v = rect("matrix/v/1"), o = rect("matrix/heads_out/1");
  CHECK(q.min.y == s.min.y);
  CHECK(q.max.y == o.max.y);
  CHECK(a.min.y == s.min.y);
  CHECK(k.min.x == s.min.x);
  CHECK(k.max.x == s.max.x);
  CHECK(v.min.x == o.min.x);
  CHECK(v.max.y < o.min.y);
  CHECK(k.max.y < s.min.y);
}

TEST_CASE("a click and a typed number reach every later step in the frame of the key") {
  Harness h;
  h.click("matrix/q/1/cell/0,1");
  h.app().type_character(U'4');
  h.frames(1);
  CHECK(h.trace(MatrixKind::kQ)(0, 1) == 4.0f);
  CHECK(h.trace(MatrixKind::kScores)(0, 0) == 9.0f);  // [1,4,1]·[0,2,1]
  h.type(".5");
  CHECK(h.trace(MatrixKind::kQ)(0, 1) == 4.5f);
  h.key(Key::kEnter);
  h.key(Key::kZ, true);
  CHECK(h.trace(MatrixKind::kQ)(0, 1) == 0.0f);  // the whole typing is one step
}

TEST_CASE("Escape takes a typed number back, and text that is no number changes nothing") {
  Harness h;
  h.click("matrix/v/1/cell/2,2");
  h.type("77");
  CHECK(h.trace(MatrixKind::kV)(2, 2) == 77.0f);
  h.key(Key::kEscape);
  CHECK(h.trace(MatrixKind::kV)(2, 2) == 1.0f);
  h.click("matrix/v/1/cell/2,2");
  h.type("-");
  h.key(Key::kEnter);
  CHECK(h.trace(MatrixKind::kV)(2, 2) == 1.0f);
  CHECK(h.has("toast/0"));
}

TEST_CASE("arrows, Tab and Enter walk over the cells") {
  Harness h;
  h.click("matrix/q/1/cell/0,0");
  h.key(Key::kDown);
  h.key(Key::kRight);
  h.type("7");
  h.key(Key::kTab);
  h.type("8");
  h.key(Key::kTab);  // to the first cell of the next row
  h.type("9");
  h.key(Key::kEnter);
  CHECK(h.trace(MatrixKind::kQ)(1, 1) == 7.0f);
  CHECK(h.trace(MatrixKind::kQ)(1, 2) == 8.0f);
  CHECK(h.trace(MatrixKind::kQ)(2, 0) == 9.0f);
}

TEST_CASE("arrows follow the eye where K is drawn transposed") {
  Harness h;
  h.click("matrix/k/1/cell/0,0");
  h.key(Key::kRight);  // to the next key: row 1 of K
  h.type("6");
  h.key(Key::kEnter);
  CHECK(h.trace(MatrixKind::kK)(1, 0) == 6.0f);
}

TEST_CASE("dragging a cell scrubs its value as one undo step") {
  Harness h;
  h.drag("matrix/q/1/cell/0,0", {60, 0});
  CHECK(h.trace(MatrixKind::kQ)(0, 0) == doctest::Approx(2.0));
  h.key(Key::kZ, true);
  CHECK(h.trace(MatrixKind::kQ)(0, 0) == 1.0f);
  CHECK_FALSE(h.app().session().title.empty());
}

TEST_CASE("a block is chosen with Shift, copied, pasted and cleared") {
  Harness h;
  h.click("matrix/q/1/cell/0,0");
  h.key(Key::kRight, false, true);
  h.key(Key::kDown, false, true);
  h.key(Key::kC, true);
  CHECK(h.clipboard() == "1\t0\n1\t2");
  h.set_clipboard("10\t20\r\n30\t40\r\n");
  h.key(Key::kV, true);
  CHECK(h.trace(MatrixKind::kQ)(1, 1) == 40.0f);
  h.key(Key::kDelete);
  CHECK(h.trace(MatrixKind::kQ)(1, 1) == 0.0f);
  CHECK(h.trace(MatrixKind::kQ)(2, 2) == 1.0f);
}

TEST_CASE("a paste that does not fit says both shapes and changes nothing") {
  Harness h;
  h.click("matrix/q/1/cell/2,2");
  h.set_clipboard("1\t2\n3\t4");
  const Matrix before = h.trace(MatrixKind::kQ);
  h.key(Key::kV, true);
  CHECK(h.trace(MatrixKind::kQ) == before);
  CHECK(h.has("toast/0"));
}

TEST_CASE("copying K copies what is on screen") {
  Harness h;
  h.click("matrix/k/1/cell/0,0");
  h.key(Key::kRight, false, true);
  h.key(Key::kC, true);
  CHECK(h.clipboard() == "0\t1");  // first entries of the first two keys, side by side
}

TEST_CASE("the context menu fills the chosen cells") {
  Harness h;
  h.click("matrix/v/1/cell/0,0");
  h.key(Key::kA, true);
  h.click("matrix/v/1/cell/1,1", 1);
  h.click("cell-menu/identity");
  CHECK(h.trace(MatrixKind::kV) == Matrix(Matrix::Identity(3, 3)));
  h.key(Key::kZ, true);
  CHECK(h.trace(MatrixKind::kV)(1, 0) == 2.0f);
}

TEST_CASE("computed matrices are not edited") {
  Harness h;
  h.click("matrix/attn/1/cell/0,0");
  h.type("5");
  h.key(Key::kEnter);
  CHECK(h.trace(MatrixKind::kAttn)(0, 0) == doctest::Approx(0.1361).epsilon(1e-3));
  CHECK_FALSE(h.app().session().title.empty());
}

TEST_CASE("the wheel zooms the axes of a matrix and Ctrl+0 fits again") {
  Harness h;
  h.app().open(h.app().session(), {});
  h.frames(2);
  const auto width = [&] {
    const auto* cell = h.app().widgets().find("matrix/scores/1/cell/1,1");
    return cell == nullptr ? 0.0f : cell->max.x - cell->min.x;
  };
  const float before = width();
  h.point("matrix/attn/1");
  h.wheel(1);
  CHECK(width() > before * 1.1f);
  h.key(Key::k0, true);
  CHECK(width() == doctest::Approx(before));
}

TEST_CASE("keys that end typing elsewhere leave the chosen cell alone") {
  Harness h;
  h.click("matrix/q/1/cell/0,0");
  h.click("tokens/text");
  h.key(Key::kEnd);
  h.type(" x");
  h.key(Key::kEnter);
  h.type("9");  // nobody has the keyboard: a new number for the chosen cell, as one would expect
  h.key(Key::kEscape);
  CHECK(h.trace(MatrixKind::kQ)(0, 0) == 1.0f);
  h.click("matrix/q/1/cell/0,0");
  h.click("field/heads");
  h.key(Key::kTab);
  h.key(Key::kDelete);
  CHECK(h.trace(MatrixKind::kQ)(0, 0) == 0.0f);  // Tab did not move the choice
}

TEST_CASE("looking at a cell's number and leaving with Escape is no edit") {
  Harness h;
  h.click("switch/causal");
  h.key(Key::kZ, true);
  h.click("matrix/q/1/cell/0,0");
  h.key(Key::kF2);
  h.key(Key::kEscape);
  CHECK(h.app().window_title().rfind("• ", 0) != 0);
  h.key(Key::kY, true);
  CHECK(h.app().session().problem.options.causal);  // redo is still there
}

TEST_CASE("keys change only a matrix that is on screen") {
  Harness h;
  h.click("matrix/q/1/cell/0,0");
  h.click("tab/heads");
  h.key(Key::kDelete);
  h.type("7");
  CHECK(h.trace(MatrixKind::kQ)(0, 0) == 1.0f);
  h.click("tab/head");
  h.key(Key::kDelete);
  CHECK(h.trace(MatrixKind::kQ)(0, 0) == 0.0f);
}

TEST_CASE("one matrix is enlarged over the stage, and Escape shows all again") {
  Harness h;
  const auto width = [&] {
    const auto* rect = h.app().widgets().find("matrix/attn/1");
    return rect->max.x - rect->min.x;
  };
  const float before = width();
  h.point("matrix/attn/1");
  h.key(Key::kM, true);
  CHECK(width() > 2 * before);
  CHECK_FALSE(h.has("matrix/q/1"));
  h.key(Key::kEscape);
  CHECK(width() == before);
}

TEST_CASE("a text that turns out to be no number leaves the cell as it was") {
  Harness h;
  h.click("matrix/q/1/cell/1,1");
  h.type("1,5");
  h.key(Key::kEnter);
  CHECK(h.trace(MatrixKind::kQ)(1, 1) == 2.0f);
}
