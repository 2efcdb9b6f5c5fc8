#include "app/ui/text_field.h"

#include <algorithm>
#include <cmath>

#include "app/ui/keys.h"

namespace qkv {
namespace {

constexpr float kPadding = 10;
constexpr double kBlinkSeconds = 0.53;

struct Geometry {
  ImVec2 min, max;   // of the text, inside the padding
  float text_x = 0;  // where the text starts, scrolled
  TextStyle style;
};

void handle_mouse(Ui& ui, const std::string& name, TextFieldState& state, const Geometry& g, TextFieldResult& result,
                  const MoveCaret& move) {
  const ImGuiIO& io = ImGui::GetIO();
  const bool hovered = ImGui::IsItemHovered();
  if (hovered) ImGui::SetMouseCursor(ImGuiMouseCursor_TextInput);
  const auto index = [&] { return ui.labels->shaper().index_at_x(state.edit.text, g.style, io.MousePos.x - g.text_x); };
  if (hovered && ImGui::IsMouseClicked(0)) {
    result.activated = ui.focus != name;
    ui.focus = name;
    state.edit.place(index(), io.KeyShift && !result.activated);
    if (ImGui::IsMouseDoubleClicked(0)) state.edit.select_word(state.edit.caret, move);
    state.dragging = true;
    state.blink_start = ui.time;
  } else if (!hovered && ui.focus == name && ImGui::IsMouseClicked(0)) {
    ui.focus.clear();
    result.left = true;
  }
  if (!ImGui::IsMouseDown(0)) state.dragging = false;
  if (state.dragging && ImGui::IsMouseDragging(0, 2)) {
    state.edit.place(index(), true);
    state.blink_start = ui.time;
  }
}

void handle_clipboard(TextEdit& edit, TextFieldResult& result) {
  if (chord_pressed({Key::kA, true})) edit.select_all();
  if (chord_pressed({Key::kC, true}) && edit.has_selection())
    ImGui::SetClipboardText(std::string(edit.selected()).c_str());
  if (chord_pressed({Key::kX, true}) && edit.has_selection()) {
    ImGui::SetClipboardText(std::string(edit.selected()).c_str());
    edit.insert("");
    result.changed = true;
  }
  if (chord_pressed({Key::kV, true})) {
    if (const char* text = ImGui::GetClipboardText()) {
      edit.insert(text);
      result.changed = true;
    }
  }
}

void handle_keys(Ui& ui, TextFieldState& state, TextFieldResult& result, const MoveCaret& move) {
  const ImGuiIO& io = ImGui::GetIO();
  TextEdit& edit = state.edit;
  const TextEdit before = edit;
  if (!ui.typed.empty()) {
    edit.insert(ui.typed);
    ui.typed.clear();
    result.changed = true;
  }
  if (key_pressed(Key::kLeft)) edit.move_by(-1, io.KeyCtrl, io.KeyShift, move);
  if (key_pressed(Key::kRight)) edit.move_by(1, io.KeyCtrl, io.KeyShift, move);
  if (key_pressed(Key::kHome)) edit.place(0, io.KeyShift);
  if (key_pressed(Key::kEnd)) edit.place(edit.text.size(), io.KeyShift);
  if (key_pressed(Key::kBackspace)) edit.erase(-1, io.KeyCtrl, move), result.changed = true;
  if (key_pressed(Key::kDelete)) edit.erase(1, io.KeyCtrl, move), result.changed = true;
  handle_clipboard(edit, result);
  if (result.changed && edit.text == before.text) result.changed = false;
  if (edit.caret != before.caret || result.changed) state.blink_start = ui.time;
  result.entered = enter_pressed();
  result.cancelled = take_escape(ui);
  if (key_pressed(Key::kTab)) result.tab = io.KeyShift ? -1 : 1;
  if (result.entered || result.cancelled || result.tab != 0) {
    ui.focus.clear();
    result.left = true;
  }
}

void draw_contents(Ui& ui, TextFieldState& state, const Geometry& g, bool active, const TextFieldLook& look) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const TextEdit& edit = state.edit;
  list->PushClipRect({g.min.x - 2, g.min.y}, {g.max.x + 2, g.max.y}, true);
  const TextShaper& shaper = ui.labels->shaper();
  const float line = static_cast<float>(look.text_size) * 1.5f;
  const float top = (g.min.y + g.max.y - line) / 2, bottom = top + line;
  if (active && edit.has_selection()) {
    const float a = g.text_x + static_cast<float>(shaper.caret_x(edit.text, g.style, edit.caret));
    const float b = g.text_x + static_cast<float>(shaper.caret_x(edit.text, g.style, edit.anchor));
    list->AddRectFilled({std::min(a, b), top}, {std::max(a, b), bottom}, to_u32(with_alpha(ui.colors().accent, 0.25)),
                        2);
  }
  if (edit.text.empty() && !look.hint.empty())
    draw_label_in(ui, list, g.min, g.max, look.hint, look.text_size, ui.colors().faint, look.align);
  else if (!active && state.scroll == 0 && look.align == TextAlign::kLeft)
    draw_label_in(ui, list, g.min, g.max, edit.text, look.text_size, ui.colors().text, look.align);
  else
    draw_label_in(ui, list, {g.text_x, g.min.y}, {g.text_x + 1e5f, g.max.y}, edit.text, look.text_size,
                  ui.colors().text, TextAlign::kLeft);
  if (active) {
    const double phase = std::fmod(ui.time - state.blink_start, 2 * kBlinkSeconds);
    if (phase < kBlinkSeconds) {
      const ImVec2 at = snap(ui, {g.text_x + static_cast<float>(shaper.caret_x(edit.text, g.style, edit.caret)), top});
      list->AddRectFilled(at, {at.x + 1.5f, bottom}, to_u32(ui.colors().accent));
    }
    ui.redraw_within(phase < kBlinkSeconds ? kBlinkSeconds - phase : 2 * kBlinkSeconds - phase);
  }
  list->PopClipRect();
}

// Keeps the caret inside the field.
void scroll_to_caret(Ui& ui, TextFieldState& state, const Geometry& g, bool active, float text_width) {
  const float room = g.max.x - g.min.x;
  if (active) {
    const float caret = static_cast<float>(ui.labels->shaper().caret_x(state.edit.text, g.style, state.edit.caret));
    state.scroll = std::clamp(state.scroll, caret - room, caret);
  }
  state.scroll = std::clamp(state.scroll, 0.0f, std::max(0.0f, text_width - room));
}

}  // namespace

TextFieldResult text_field(Ui& ui, const std::string& name, ImVec2 min, ImVec2 max, TextFieldState& state,
                           const TextFieldLook& look) {
  ImGui::SetCursorScreenPos(min);
  ImGui::InvisibleButton(name.c_str(), {max.x - min.x, max.y - min.y});
  ui.widgets->add(name, min, max);
  const MoveCaret move = [&ui](std::string_view text, std::size_t index, int direction) {
    return ui.labels->shaper().move_caret(text, index, direction);
  };
  const float padding = look.frame ? kPadding : 4;
  Geometry g{{min.x + padding, min.y}, {max.x - padding, max.y}, 0, {look.text_size, false, ui.colors().text, 0}};
  const auto place_text = [&] {
    const float width = label_width(ui, state.edit.text, look.text_size);
    scroll_to_caret(ui, state, g, ui.focus == name, width);
    g.text_x = g.min.x - state.scroll;
    if (look.align == TextAlign::kRight) g.text_x = std::max(g.text_x, g.max.x - width);
    if (look.align == TextAlign::kCenter) g.text_x = std::max(g.text_x, (g.min.x + g.max.x - width) / 2);
  };
  place_text();
  TextFieldResult result;
  handle_mouse(ui, name, state, g, result, move);
  if (ui.focus == name) {
    ui.focus_seen = true;
    handle_keys(ui, state, result, move);
    place_text();
  }
  const bool active = ui.focus == name;
  if (look.frame) {
    ImDrawList* list = ImGui::GetWindowDrawList();
    list->AddRectFilled(min, max, to_u32(ui.colors().field), 6);
    list->AddRect(min, max, to_u32(active ? ui.colors().accent : ui.colors().line), 6, 0, 1);
  }
  draw_contents(ui, state, g, active, look);
  return result;
}

void focus_text_field(Ui& ui, const std::string& name, TextFieldState& state) {
  ui.focus = name;
  ui.focus_seen = true;
  state.blink_start = ui.time;
}

}  // namespace qkv
