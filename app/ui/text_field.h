// A one-line text field drawn through Pango: every script, emoji, and characters beyond ImGui's 16 bits.
#pragma once

#include <string>

#include "app/ui/text_edit.h"
#include "app/ui/ui.h"

namespace qkv {

struct TextFieldState {
  TextEdit edit;
  float scroll = 0;        // logical pixels hidden at the left
  double blink_start = 0;  // Ui::time of the last movement of the caret
  bool dragging = false;
};

struct TextFieldLook {
  std::string_view hint;  // shown dimmed while empty
  double text_size = 14;
  TextAlign align = TextAlign::kLeft;
  bool frame = true;  // background and border
};

struct TextFieldResult {
  bool activated = false;  // took the keyboard in this frame
  bool changed = false;
  bool entered = false;    // Enter: the field gives the keyboard back
  bool cancelled = false;  // Escape: likewise
  bool left = false;       // lost the keyboard for any reason
  int tab = 0;             // 1 Tab, −1 Shift+Tab: gives the keyboard back
};

// Draws the field at min … max and handles its keys while Ui::focus is `name`. Arrow keys up and down are left
// to the caller. The name is registered as a widget.
TextFieldResult text_field(Ui& ui, const std::string& name, ImVec2 min, ImVec2 max, TextFieldState& state,
                           const TextFieldLook& look = {});

// Gives the keyboard to a field; it will be drawn in this frame or the next.
void focus_text_field(Ui& ui, const std::string& name, TextFieldState& state);

}  // namespace qkv
