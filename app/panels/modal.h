// Dialogs over the window: one look, one way to open and close.
#pragma once

#include <string>
#include <string_view>

#include "app/ui/controls.h"

namespace qkv {

// Draws the frame and title of a dialog while `open`; true when its content is to be drawn, then call end_modal().
bool begin_modal(Ui& ui, const char* name, std::string_view title, ImVec2 size, bool& open, bool& just_opened);
void end_modal(bool open);

// Buttons at the bottom right: 1 = the main one, where it is `enabled`, 2 = Cancel, 3 = `other` (left of Cancel, none
// if empty), 0 = none.
int modal_buttons(Ui& ui, const std::string& name, std::string_view main, std::string_view other = {},
                  std::string_view cancel = "Cancel", bool enabled = true);

}  // namespace qkv
