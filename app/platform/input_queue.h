// Input between the window's events and ImGui's frames: nothing is lost or merged however slow frames are.
#pragma once

#include <imgui.h>

#include <bitset>
#include <deque>
#include <string>
#include <variant>

#include "app/ui/keys.h"

namespace qkv {

// ImGui up to 1.86 sees only the state of keys and buttons at the start of a frame. So a frame is fed only as many
// events as it can tell apart: a press and its release, two key presses, or a key press and a click go to
// different frames, in the order in which they came.
class InputQueue {
 public:
  void move(ImVec2 position);  // logical pixels
  void leave();                // the pointer is off the window
  void button(int button, bool down);
  void wheel(float x, float y);
  void key(Key key, bool down);
  void character(char32_t c);
  void focus(bool focused);

  // Feeds what the next frame shall see; returns its typed characters, of any plane.
  std::u32string feed(ImGuiIO& io);
  bool pending() const { return !events_.empty(); }
  // A key (other than a modifier) or a button is down, as fed so far: ImGui repeats it by itself, frame by frame.
  bool holding() const;

 private:
  struct Move {
    ImVec2 position;
    bool inside;
  };
  struct Button {
    int button;
    bool down;
  };
  struct Wheel {
    float x, y;
  };
  struct KeyChange {
    Key key;
    bool down;
  };
  struct Character {
    char32_t c;
  };
  struct Focus {
    bool focused;
  };
  using Event = std::variant<Move, Button, Wheel, KeyChange, Character, Focus>;

  static constexpr std::size_t kKeys = 512, kButtons = 5;
  // What the frame being fed has seen.
  struct Seen {
    std::bitset<kKeys> keys;
    std::bitset<kButtons> buttons;
    bool key_press = false, wheel = false;
    std::u32string typed;
  };

  static bool belongs_to_next(const Event& event, const Seen& seen);
  void apply(const Event& event, Seen& seen, ImGuiIO& io);

  std::deque<Event> events_;
  std::bitset<kKeys> keys_down_;
  std::bitset<kButtons> buttons_down_;
};

}  // namespace qkv
