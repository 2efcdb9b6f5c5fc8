// Tokens: typed, split, renamed, moved; their rows of numbers.
#include <doctest/doctest.h>

#include "tests/app/harness.h"

using namespace qkv;
using Tokens = std::vector<std::string>;

TEST_CASE("text becomes tokens as it is typed, and rows that stay keep their numbers") {
  Harness h;
  h.click("tokens/text");
  h.key(Key::kEnd);
  h.type(" 跑");
  CHECK(h.app().session().tokens == Tokens{"貓", "追", "老鼠", "跑"});
  CHECK(h.trace(MatrixKind::kScores)(1, 0) == 5.0f);
  CHECK(h.trace(MatrixKind::kScores).rows() == 4);
  h.key(Key::kEscape);
  h.key(Key::kZ, true);
  CHECK(h.app().session().tokens == Tokens{"貓", "追", "老鼠"});
}

TEST_CASE("characters beyond 16 bits, joined emoji and other scripts stay whole") {
  Harness h;
  h.click("tokens/text");
  h.key(Key::kA, true);
  h.type("👩‍👩‍👧 नमस्ते السلام é");
  CHECK(h.app().session().tokens == Tokens{"👩‍👩‍👧", "नमस्ते", "السلام", "é"});
  h.key(Key::kBackspace);
  CHECK(h.app().session().tokens == Tokens{"👩‍👩‍👧", "नमस्ते", "السلام"});
}

TEST_CASE("an emptied field keeps the last tokens") {
  Harness h;
  h.click("tokens/text");
  h.key(Key::kA, true);
  h.key(Key::kBackspace);
  CHECK(h.app().session().tokens.size() == 3);
}

TEST_CASE("pasted text becomes tokens") {
  Harness h;
  h.click("tokens/text");
  h.key(Key::kA, true);
  h.set_clipboard("the cat\nsat");
  h.key(Key::kV, true);
  CHECK(h.app().session().tokens == Tokens{"the", "cat", "sat"});
}

TEST_CASE("the split is chosen, and 老鼠 is one token until then") {
  Harness h;
  h.click("field/split");
  h.click("field/split/space and CJK");
  CHECK(h.app().session().tokens == Tokens{"貓", "追", "老", "鼠"});
  h.click("field/split");
  h.click("field/split/white space");
  CHECK(h.app().session().tokens == Tokens{"貓", "追", "老鼠"});
}

TEST_CASE("chips rename, remove and move tokens") {
  Harness h;
  h.double_click("tokens/chip/0");
  h.type("狗");
  h.key(Key::kEnter);
  CHECK(h.app().session().tokens[0] == "狗");
  CHECK(h.trace(MatrixKind::kQ)(0, 0) == 1.0f);
  h.click("tokens/chip/2", 1);
  h.click("chip-menu/Move left");
  CHECK(h.app().session().tokens == Tokens{"狗", "老鼠", "追"});
  CHECK(h.trace(MatrixKind::kQ)(2, 1) == 2.0f);  // the row of 追 moved with it
  h.click("tokens/chip/0", 1);
  h.click("chip-menu/Remove");
  CHECK(h.app().session().tokens == Tokens{"老鼠", "追"});
}

TEST_CASE("a key can be hidden and shown again") {
  Harness h;
  h.click("tokens/chip/1", 1);
  h.click("chip-menu/Hide this key (padding)");
  CHECK(h.trace(MatrixKind::kAttn)(0, 1) == 0.0f);
  CHECK(h.has("matrix/keep/1"));
  h.click("button/show-keys");
  CHECK(h.trace(MatrixKind::kAttn)(0, 1) > 0.4f);
}

TEST_CASE("a name that the split would take apart is refused") {
  Harness h;
  h.double_click("tokens/chip/1");
  h.type("two words");
  h.key(Key::kEnter);
  CHECK(h.app().session().tokens == Tokens{"貓", "追", "老鼠"});
  CHECK(h.has("toast/0"));
}

TEST_CASE("an inserted token waits for its name") {
  Harness h;
  h.click("tokens/chip/0", 1);
  h.click("chip-menu/Insert after");
  h.type("大");
  h.key(Key::kEnter);
  CHECK(h.app().session().tokens == Tokens{"貓", "大", "追", "老鼠"});
}

TEST_CASE("a sentence that is typed anew finds the numbers of its tokens again") {
  Harness h;
  h.click("tokens/text");
  h.key(Key::kA, true);
  h.type("貓 追 老鼠 跑");
  CHECK(h.trace(MatrixKind::kScores).topLeftCorner(3, 3)(1, 0) == 5.0f);
  CHECK(h.trace(MatrixKind::kV)(2, 1) == 2.0f);
  h.key(Key::kEscape);
  h.key(Key::kZ, true);
  CHECK(h.app().session().tokens.size() == 3);
}
