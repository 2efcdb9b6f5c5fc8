#include "app/platform/input_queue.h"

#include "app/platform/imgui_compat.h"

namespace qkv {
namespace {

// GLFW's codes of both Shift, Control, Alt and Super keys.
constexpr int kLeftShift = 340, kLeftControl = 341, kLeftAlt = 342, kLeftSuper = 343;
constexpr int kRightShift = 344, kRightControl = 345, kRightAlt = 346, kRightSuper = 347;

std::size_t index_of(Key key) { return static_cast<std::size_t>(key); }
bool is_modifier(Key key) { return static_cast<int>(key) >= kLeftShift && static_cast<int>(key) <= kRightSuper; }

}  // namespace

void InputQueue::move(ImVec2 position) { events_.push_back(Move{position, true}); }
void InputQueue::leave() { events_.push_back(Move{{0, 0}, false}); }
void InputQueue::button(int button, bool down) {
  if (button >= 0 && static_cast<std::size_t>(button) < kButtons) events_.push_back(Button{button, down});
}
void InputQueue::wheel(float x, float y) { events_.push_back(Wheel{x, y}); }
void InputQueue::key(Key key, bool down) {
  if (static_cast<int>(key) >= 0 && index_of(key) < kKeys) events_.push_back(KeyChange{key, down});
}
void InputQueue::character(char32_t c) { events_.push_back(Character{c}); }
void InputQueue::focus(bool focused) { events_.push_back(Focus{focused}); }

std::u32string InputQueue::feed(ImGuiIO& io) {
  Seen seen;
  while (!events_.empty() && !belongs_to_next(events_.front(), seen)) {
    apply(events_.front(), seen, io);
    events_.pop_front();
  }
  return std::move(seen.typed);
}

bool InputQueue::holding() const {
  if (buttons_down_.any()) return true;
  std::bitset<kKeys> plain = keys_down_;
  for (int code = kLeftShift; code <= kRightSuper; ++code) plain.reset(static_cast<std::size_t>(code));
  return plain.any();
}

bool InputQueue::belongs_to_next(const Event& event, const Seen& seen) {
  if (std::holds_alternative<Move>(event)) return seen.buttons.any() || seen.wheel || seen.key_press;
  if (std::holds_alternative<Wheel>(event)) return seen.buttons.any() || seen.key_press;
  if (std::holds_alternative<Character>(event)) return seen.buttons.any();
  if (std::holds_alternative<Focus>(event)) return seen.buttons.any() || seen.keys.any();
  if (const auto* button = std::get_if<Button>(&event))
    return seen.buttons.test(static_cast<std::size_t>(button->button)) || seen.wheel || seen.key_press ||
           !seen.typed.empty();
  const KeyChange& change = std::get<KeyChange>(event);
  if (seen.keys.test(index_of(change.key)) || seen.buttons.any() || !seen.typed.empty()) return true;
  return seen.key_press && (change.down || is_modifier(change.key));
}

void InputQueue::apply(const Event& event, Seen& seen, ImGuiIO& io) {
  if (const auto* move = std::get_if<Move>(&event)) {
    if (move->inside) {
      compat::feed_mouse_position(io, move->position);
    } else {
      compat::feed_no_mouse(io);
    }
  } else if (const auto* button = std::get_if<Button>(&event)) {
    seen.buttons.set(static_cast<std::size_t>(button->button));
    buttons_down_.set(static_cast<std::size_t>(button->button), button->down);
    compat::feed_mouse_button(io, button->button, button->down);
  } else if (const auto* wheel = std::get_if<Wheel>(&event)) {
    seen.wheel = true;
    compat::feed_wheel(io, wheel->x, wheel->y);
  } else if (const auto* change = std::get_if<KeyChange>(&event)) {
    const std::size_t key = index_of(change->key);
    seen.keys.set(key);
    seen.key_press = seen.key_press || (change->down && !is_modifier(change->key));
    keys_down_.set(key, change->down);
    compat::feed_modifiers(io, keys_down_.test(kLeftControl) || keys_down_.test(kRightControl),
                           keys_down_.test(kLeftShift) || keys_down_.test(kRightShift),
                           keys_down_.test(kLeftAlt) || keys_down_.test(kRightAlt),
                           keys_down_.test(kLeftSuper) || keys_down_.test(kRightSuper));
    feed_key(io, change->key, change->down);
  } else if (const auto* character = std::get_if<Character>(&event)) {
    seen.typed.push_back(character->c);
    io.AddInputCharacter(character->c);
  } else {
    // The window system releases keys and buttons of a window that loses the focus; those events follow.
    io.AddFocusEvent(std::get<Focus>(event).focused);
  }
}

}  // namespace qkv
