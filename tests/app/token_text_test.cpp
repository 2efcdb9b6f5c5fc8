// Tokens as a model writes them: chips and labels show them readably, what is stored stays, and the view switches.
#include <doctest/doctest.h>

#include "app/panels/axis_tips.h"
#include "app/panels/inspector_words.h"
#include "app/panels/stage.h"
#include "core/figure/text.h"
#include "tests/app/harness.h"

using namespace qkv;
using Texts = std::vector<std::string>;

namespace {

Session gpt2_session() {
  Session session = worked_example();
  session.tokens = {"<|endoftext|>", "Ġè²", "ĵ"};
  return session;
}

// A chip is as wide as the text that it shows, with room at both sides.
float chip_width(Harness& h, int index) {
  const WidgetRegistry::Rect* chip = h.app().widgets().find("tokens/chip/" + std::to_string(index));
  REQUIRE(chip != nullptr);
  return chip->max.x - chip->min.x;
}

float width_of(const std::string& text) {
  return static_cast<float>(TextShaper().measure(text, {.size = 13}).width) + 18;
}

}  // namespace

TEST_CASE("chips show tokens readably, and as stored when the view says so") {
  Harness h;
  h.app().open(gpt2_session(), {});
  h.frames(2);
  CHECK(chip_width(h, 1) == doctest::Approx(width_of("·‹E8 B2…›")));
  CHECK(chip_width(h, 2) == doctest::Approx(width_of("…貓")));
  h.click("menu/View");
  h.click("menu-item/Raw tokens");
  h.frames(2);
  CHECK(h.app().session().view.raw_tokens);
  CHECK(chip_width(h, 1) == doctest::Approx(width_of("Ġè²")));
  CHECK(chip_width(h, 2) == doctest::Approx(width_of("ĵ")));
  CHECK(h.app().session().tokens == gpt2_session().tokens);
  h.click("menu/View");
  h.click("menu-item/Raw tokens");
  h.frames(2);
  CHECK_FALSE(h.app().session().view.raw_tokens);
  CHECK(chip_width(h, 1) == doctest::Approx(width_of("·‹E8 B2…›")));
}

TEST_CASE("a chip is renamed by what is stored") {
  Harness h;
  Session session = gpt2_session();
  session.tokens = {"Hello", "Ġworld", "Ġagain"};
  h.app().open(session, {});
  h.frames(2);
  h.double_click("tokens/chip/1");
  h.key(Key::kEnd);
  h.type("s");
  h.key(Key::kEnter);
  CHECK(h.app().session().tokens == Texts{"Hello", "Ġworlds", "Ġagain"});
  h.frames(2);
  CHECK(chip_width(h, 1) == doctest::Approx(width_of("·worlds")));
}

TEST_CASE("the style follows the tokens as they are typed") {
  Harness h;
  h.click("tokens/text");
  h.key(Key::kA, true);
  h.type("the ▁cat sat");
  h.frames(2);
  CHECK(chip_width(h, 1) == doctest::Approx(width_of("▁cat")));
  h.type(" ▁on");
  h.frames(2);
  CHECK(chip_width(h, 1) == doctest::Approx(width_of("·cat")));
  CHECK(h.app().session().tokens == Texts{"the", "▁cat", "sat", "▁on"});
}

TEST_CASE("the inspector and the axes name tokens as they are shown") {
  const Session session = gpt2_session();
  const MatrixId attn{MatrixKind::kAttn, 0}, q{MatrixKind::kQ, 0};
  const TokenStyle style = token_style(session, session.view);
  CHECK(cell_heading(attn, 0, 2, session, style) == "ATTENTION · <|endoftext|> → …貓");
  CHECK(cell_heading(attn, 0, 2, session, TokenStyle::kStored) == "ATTENTION · <|endoftext|> → ĵ");
  CHECK(cell_name(q, 1, 0, session, style) == "Q[·‹E8 B2…›, 1]");
  Computed computed;
  computed.session = session;
  StageInput in{session, computed, 1};
  in.tokens = style;
  CHECK(shown_names(in, Axis::kKeys, 3)[1] == "·‹E8 B2…›");
  CHECK(shown_names(in, Axis::kKeys, 3).is_special(0));
  in.tokens = TokenStyle::kStored;
  CHECK(shown_names(in, Axis::kQueries, 3)[1] == "Ġè²");
}

TEST_CASE("a tip says the whole token, where it stands, and how it is stored") {
  const Session session = gpt2_session();
  Computed computed;
  computed.session = session;
  StageInput in{session, computed, 1};
  in.tokens = token_style(session, session.view);
  const AxisTip piece = axis_tip(in, Axis::kQueries, 1, 3);
  CHECK(piece.token == "·‹E8 B2…›");
  CHECK(piece.position == "Query 2 of 3");
  CHECK(piece.stored == "Ġè²");
  const AxisTip special = axis_tip(in, Axis::kKeys, 0, 3);
  CHECK(special.token == "<|endoftext|>");
  CHECK(special.position == "Key 1 of 3");
  CHECK(special.stored == "");
  in.tokens = TokenStyle::kStored;
  CHECK(axis_tip(in, Axis::kQueries, 1, 3).stored == "");
}

TEST_CASE("resting on the labels of an axis shows the token beside the pointer") {
  Harness h;
  Session session = worked_example();
  session.tokens = {"a", std::string(400, 'w'), "c"};
  h.app().open(session, {});
  h.frames(2);
  const float middle = h.center("matrix/q/1/row-labels").x;
  for (int row = 0; row < 3; ++row) {
    h.point_at({middle, h.center("matrix/q/1/cell/" + std::to_string(row) + ",0").y});
    h.frames(1);
    CHECK(h.has("axis-tip/" + std::to_string(row)));
  }
  h.point_at({h.center("matrix/k/1/cell/2,0").x, h.center("matrix/k/1/column-labels").y});  // K stands transposed
  h.frames(1);
  CHECK(h.has("axis-tip/2"));
  h.point("matrix/q/1/cell/0,0");
  h.frames(1);
  for (int index = 0; index < 3; ++index) CHECK_FALSE(h.has("axis-tip/" + std::to_string(index)));
}
