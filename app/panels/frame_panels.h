// What frames the stage: the top bar with menus, the tabs, the status line, toasts and the command palette.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/panels/compare_tab.h"
#include "app/panels/stage.h"
#include "app/ui/commands.h"

namespace qkv {

struct MenuEntry {  // an example or a recent file
  std::string text;
  std::filesystem::path path;
};

struct TopBarInput {
  std::string title;
  bool edited = false;
  ThemeName theme = ThemeName::kLight;
  CommandContext context;
  std::string undo_label, redo_label;
  const std::vector<MenuEntry>* examples = nullptr;
  const std::vector<MenuEntry>* recent = nullptr;
};
inline constexpr float kTopBarHeight = 40, kTabBarHeight = 44, kStatusHeight = 28;

void draw_top_bar(Ui& ui, const TopBarInput& input, ActionQueue& queue);

// The tabs, the formula of the tab and the lens at the right, and the heads to choose from below where there are
// several; the tab of a comparison where `compare` has one. Returns the height used.
float draw_tab_bar(Ui& ui, const StageInput& in, const CompareState& compare, ImVec2 min, float width,
                   ActionQueue& queue);

// Shapes, time of a pass that is done, and what deserves a word: dead rows, NaN, clipped colours.
struct StatusInput {
  bool busy = false;
  bool can_stop = false;  // a streamed pass
  double zoom = 1;
  std::string failure;  // why the newest edit has no numbers; empty = it has
};
void draw_status_bar(Ui& ui, const StageInput& in, const StatusInput& status, ImVec2 min, ImVec2 max,
                     ActionQueue& queue);

struct Toast {
  std::string text;
  double until = 0;  // Ui::time
};
// Short messages that go away by themselves, above the status line.
void draw_toasts(Ui& ui, std::vector<Toast>& toasts, ImVec2 bottom_center);

// A list of all commands, found by typing.
struct PaletteState {
  bool open = false, just_opened = false;
  TextFieldState field;
  int selected = 0;
};
void draw_palette(Ui& ui, const CommandContext& context, PaletteState& state, ActionQueue& queue);

}  // namespace qkv
