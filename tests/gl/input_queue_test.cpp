#include "app/platform/input_queue.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "app/platform/imgui_context.h"
#include "app/ui/fonts.h"

namespace qkv::test {
namespace {

// Whole frames of nothing but input.
struct Frames {
  ImGuiSession imgui;
  FontSet fonts;
  InputQueue queue;

  Frames() {
    map_keys(ImGui::GetIO());
    ImGui::GetIO().DisplaySize = {400, 300};
    ImGui::GetIO().DeltaTime = 1.0f / 60;
    fonts.build(1);
  }
  // Feeds and runs a frame, `look` inside of it; returns what was typed.
  std::u32string run(const std::function<void()>& look = [] {}) {
    std::u32string typed = queue.feed(ImGui::GetIO());
    ImGui::NewFrame();
    look();
    ImGui::Render();
    return typed;
  }
};

}  // namespace

TEST_CASE("a key that goes down and up between two frames is pressed in one") {
  Frames frames;
  frames.queue.key(Key::kEnter, true);
  frames.queue.key(Key::kEnter, false);
  bool pressed = false;
  frames.run([&] { pressed = key_pressed(Key::kEnter, false); });
  CHECK(pressed);
  CHECK(frames.queue.pending());
  frames.run([&] { pressed = key_pressed(Key::kEnter, false); });
  CHECK_FALSE(pressed);
  CHECK_FALSE(frames.queue.pending());
  CHECK_FALSE(frames.queue.holding());
}

TEST_CASE("keys and characters that come at once keep their order") {
  Frames frames;
  // "1", Enter, "2", Tab, as a fast typist or a test tool sends them.
  const auto press = [&](Key key, char32_t c) {
    frames.queue.key(key, true);
    if (c != 0) frames.queue.character(c);
    frames.queue.key(key, false);
  };
  press(Key{'1'}, U'1');
  press(Key::kEnter, 0);
  press(Key{'2'}, U'2');
  press(Key::kTab, 0);
  std::string order;
  while (frames.queue.pending()) {
    std::u32string typed = frames.run([&] {
      if (key_pressed(Key::kEnter, false)) order += 'E';
      if (key_pressed(Key::kTab, false)) order += 'T';
    });
    for (const char32_t c : typed) order += static_cast<char>(c);
  }
  CHECK(order == "1E2T");
}

TEST_CASE("an input method's text arrives in one frame, whatever its plane") {
  Frames frames;
  for (const char32_t c : std::u32string_view(U"貓追😀")) frames.queue.character(c);
  CHECK(frames.run() == U"貓追😀");
  CHECK_FALSE(frames.queue.pending());
}

TEST_CASE("a click between two frames is seen, at its place") {
  Frames frames;
  frames.queue.move({10, 20});
  frames.queue.button(0, true);
  frames.queue.button(0, false);
  frames.queue.move({300, 200});
  ImVec2 place;
  bool clicked = false;
  frames.run([&] {
    clicked = ImGui::IsMouseClicked(0);
    place = ImGui::GetIO().MousePos;
  });
  CHECK(clicked);
  CHECK(place.x == 10);
  bool released = false;
  frames.run([&] {
    released = ImGui::IsMouseReleased(0);
    place = ImGui::GetIO().MousePos;
  });
  CHECK(released);
  CHECK(place.x == 10);
  frames.run([&] { place = ImGui::GetIO().MousePos; });
  CHECK(place.x == 300);
  CHECK_FALSE(frames.queue.pending());
}

TEST_CASE("two clicks are a double click") {
  Frames frames;
  frames.queue.move({10, 20});
  for (int i = 0; i < 2; ++i) {
    frames.queue.button(0, true);
    frames.queue.button(0, false);
  }
  int doubles = 0;
  while (frames.queue.pending()) frames.run([&] { doubles += ImGui::IsMouseDoubleClicked(0) ? 1 : 0; });
  CHECK(doubles == 1);
}

TEST_CASE("modifiers hold for the key that they were pressed with") {
  Frames frames;
  constexpr Key kControl{341}, kShift{340};
  frames.queue.key(kControl, true);
  frames.queue.key(Key::kZ, true);
  frames.queue.key(Key::kZ, false);
  frames.queue.key(kShift, true);
  frames.queue.key(Key::kZ, true);
  frames.queue.key(Key::kZ, false);
  frames.queue.key(kShift, false);
  frames.queue.key(kControl, false);
  frames.queue.key(Key::kZ, true);
  frames.queue.key(Key::kZ, false);
  std::vector<std::string> chords;
  while (frames.queue.pending())
    frames.run([&] {
      if (!key_pressed(Key::kZ, false)) return;
      chords.push_back(std::string(ImGui::GetIO().KeyCtrl ? "c" : "") + (ImGui::GetIO().KeyShift ? "s" : ""));
    });
  CHECK(chords == std::vector<std::string>{"c", "cs", ""});
  CHECK_FALSE(ImGui::GetIO().KeyCtrl);
}

TEST_CASE("moves are merged, wheel steps add up") {
  Frames frames;
  for (int i = 0; i < 50; ++i) frames.queue.move({static_cast<float>(i), 5});
  frames.queue.wheel(0, 1);
  frames.queue.wheel(0, 2);
  float wheel = 0;
  frames.run([&] {
    wheel = ImGui::GetIO().MouseWheel;
    CHECK(ImGui::GetIO().MousePos.x == 49);
  });
  CHECK(wheel == 3);
  CHECK_FALSE(frames.queue.pending());
  frames.run([&] { CHECK(ImGui::GetIO().MouseWheel == 0); });
}

TEST_CASE("only keys and buttons that are down hold") {
  Frames frames;
  frames.queue.key(Key{340}, true);
  frames.run();
  CHECK_FALSE(frames.queue.holding());
  frames.queue.button(1, true);
  frames.run();
  CHECK(frames.queue.holding());
  frames.queue.button(1, false);
  frames.queue.button(77, true);  // unknown ones are left alone
  frames.queue.key(Key{-1}, true);
  frames.run();
  CHECK_FALSE(frames.queue.holding());
  frames.queue.leave();
  frames.run([] { CHECK_FALSE(ImGui::IsMousePosValid()); });
}

}  // namespace qkv::test
