// One record per command feeds the menus, the palette and the shortcuts.
#pragma once

#include <span>
#include <string_view>

#include "app/ui/action_queue.h"
#include "app/ui/keys.h"

namespace qkv {

enum class MenuId { kFile, kEdit, kView, kHelp };

struct CommandInfo {
  CommandId id;
  MenuId menu;
  std::string_view text;
  Chord chord = {};
  bool line_before = false;  // a separator in the menu
};
std::span<const CommandInfo> commands();
const CommandInfo& command_of(CommandId id);

// What a command depends on.
struct CommandContext {
  bool can_undo = false, can_redo = false;
  bool has_selection = false, can_paste = false;
  bool has_projection = false;  // the X · W tab exists
  bool many_heads = false;
  bool raw_tokens = false;
  bool only_weights = false;    // no lens, no Concat, and One head is one matrix
  bool has_comparison = false;  // the Compare tab exists
  bool setup_hidden = false, inspector_hidden = false;
  bool can_stop = false, is_stopped = false;  // a streamed pass
};
bool is_enabled(CommandId id, const CommandContext& context);
// CommandInfo::text, or what the command does instead where its panel is hidden already.
std::string_view command_text(const CommandInfo& command, const CommandContext& context);

// "Ctrl+Shift+S"; empty without a shortcut.
std::string chord_text(const Chord& chord);

// Emits the commands whose shortcut was pressed. While a text field has the keyboard (`typing`), only those that
// do not belong to text editing.
void handle_shortcuts(const CommandContext& context, bool typing, ActionQueue& queue);

}  // namespace qkv
