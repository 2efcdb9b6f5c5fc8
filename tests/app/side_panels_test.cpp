// The set-up and the inspector, hidden and shown again.
#include <doctest/doctest.h>

#include "tests/app/harness.h"

using namespace qkv;

namespace {

float left_end(Harness& h) { return h.app().widgets().find("matrix/q/1")->min.x; }
float right_end(Harness& h) { return h.app().widgets().find("matrix/heads_out/1")->max.x; }

}  // namespace

TEST_CASE("side panels: each is hidden and shown by its chevron, and the stage takes the room") {
  Harness h(1000, 650);
  REQUIRE(h.has("field/heads"));
  const float q = left_end(h), out = right_end(h);
  h.click("panel/setup");
  CHECK_FALSE(h.has("field/heads"));
  CHECK_FALSE(h.has("splitter/left"));
  CHECK(h.has("splitter/right"));
  CHECK(left_end(h) < q);
  CHECK(h.app().preferences().setup_hidden);
  const float wider = right_end(h);
  h.click("panel/inspector");
  CHECK_FALSE(h.has("splitter/right"));
  CHECK(right_end(h) > wider);
  CHECK(h.app().preferences().inspector_hidden);
  h.click("panel/setup");
  h.click("panel/inspector");
  CHECK(h.has("field/heads"));
  CHECK(left_end(h) == q);
  CHECK(right_end(h) == out);
  // The chevron stands beside the first tab without taking its clicks.
  h.click("tab/heads");
  CHECK(h.app().session().view.tab == Tab::kHeads);
}

TEST_CASE("side panels: keys and the list of commands hide them, also while a field of theirs is typed into") {
  Harness h;
  h.click("field/heads");
  h.key(Key::kB, true);
  CHECK(h.app().preferences().setup_hidden);
  CHECK_FALSE(h.has("field/heads"));
  h.key(Key::kB, true);
  CHECK_FALSE(h.app().preferences().setup_hidden);
  CHECK(h.has("field/heads"));
  h.key(Key::kB, true, true);
  CHECK(h.app().preferences().inspector_hidden);
  CHECK_FALSE(h.app().preferences().setup_hidden);
  h.key(Key::kP, true, true);
  h.type("show inspector");
  h.key(Key::kEnter);
  CHECK_FALSE(h.app().preferences().inspector_hidden);
}
