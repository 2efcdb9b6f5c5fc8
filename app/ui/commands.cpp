#include "app/ui/commands.h"

#include <algorithm>
#include <array>

namespace qkv {
namespace {

using enum CommandId;

constexpr std::array kCommands = {
    CommandInfo{kNew, MenuId::kFile, "New from the worked example", {Key::kN, true}},
    CommandInfo{kOpen, MenuId::kFile, "Open…", {Key::kO, true}},
    CommandInfo{kOpenTensors, MenuId::kFile, "Open tensors, choosing what is what…", {}},
    CommandInfo{kOpenClipboard, MenuId::kFile, "Open from the clipboard", {}},
    CommandInfo{kCompare, MenuId::kFile, "Compare with…", {Key::kO, true, true}},
    CommandInfo{kSave, MenuId::kFile, "Save", {Key::kS, true}, true},
    CommandInfo{kSaveAs, MenuId::kFile, "Save as…", {Key::kS, true, true}},
    CommandInfo{kExport, MenuId::kFile, "Export picture…", {Key::kE, true}, true},
    CommandInfo{kScreenshot, MenuId::kFile, "Save a picture of the window…", {Key::kE, true, true}},
    CommandInfo{kSaveMatrix, MenuId::kFile, "Save matrix as…", {}, true},
    CommandInfo{kSaveArrays, MenuId::kFile, "Save all matrices as .npz…"},
    CommandInfo{kQuit, MenuId::kFile, "Quit", {Key::kQ, true}, true},
    CommandInfo{kUndo, MenuId::kEdit, "Undo", {Key::kZ, true}},
    CommandInfo{kRedo, MenuId::kEdit, "Redo", {Key::kZ, true, true}},
    CommandInfo{kCopy, MenuId::kEdit, "Copy cells", {Key::kC, true}, true},
    CommandInfo{kCopyMatrix, MenuId::kEdit, "Copy matrix", {Key::kC, true, true}},
    CommandInfo{kPaste, MenuId::kEdit, "Paste cells", {Key::kV, true}},
    CommandInfo{kSelectAll, MenuId::kEdit, "Choose the whole matrix", {Key::kA, true}},
    CommandInfo{kFill, MenuId::kEdit, "Fill the chosen cells…", {Key::kD, true}},
    CommandInfo{kCopyNumpy, MenuId::kEdit, "Copy as NumPy", {}, true},
    CommandInfo{kCopyPytorch, MenuId::kEdit, "Copy as PyTorch"},
    CommandInfo{kCopyLatex, MenuId::kEdit, "Copy as LaTeX"},
    CommandInfo{kTabHead, MenuId::kView, "One head", {Key::k1, true}},
    CommandInfo{kTabHeads, MenuId::kView, "All heads", {Key::k2, true}},
    CommandInfo{kTabConcat, MenuId::kView, "Concat · Wᴼ", {Key::k3, true}},
    CommandInfo{kTabProjection, MenuId::kView, "X · W", {Key::k4, true}},
    CommandInfo{kTabCompare, MenuId::kView, "Compare", {}},
    CommandInfo{kPreviousHead, MenuId::kView, "Previous head", {Key::kPageUp}, true},
    CommandInfo{kNextHead, MenuId::kView, "Next head", {Key::kPageDown}},
    CommandInfo{kLensValues, MenuId::kView, "Values in the cells", {}, true},
    CommandInfo{kLensGradient, MenuId::kView, "Gradients in the cells", {}},
    CommandInfo{kLensPrecision, MenuId::kView, "What bfloat16 changes in the cells", {}},
    CommandInfo{kRawTokens, MenuId::kView, "Raw tokens", {}, true},
    CommandInfo{kFit, MenuId::kView, "Fit everything", {Key::k0, true}, true},
    CommandInfo{kEnlarge, MenuId::kView, "Enlarge the matrix, or show all", {Key::kM, true}},
    CommandInfo{kZoomIn, MenuId::kView, "Zoom in", {Key::kEqual, true}},
    CommandInfo{kZoomOut, MenuId::kView, "Zoom out", {Key::kMinus, true}},
    CommandInfo{kSetup, MenuId::kView, "Hide the setup", {Key::kB, true}, true},
    CommandInfo{kInspector, MenuId::kView, "Hide the inspector", {Key::kB, true, true}},
    CommandInfo{kStop, MenuId::kView, "Stop computing", {Key::kPeriod, true}, true},
    CommandInfo{kThemeLight, MenuId::kView, "Light", {}, true},
    CommandInfo{kThemeDark, MenuId::kView, "Dark", {}},
    CommandInfo{kPalette, MenuId::kHelp, "All commands…", {Key::kP, true, true}},
    CommandInfo{kShortcuts, MenuId::kHelp, "Mouse and keys", {Key::kF1}},
    CommandInfo{kAbout, MenuId::kHelp, "About qkvlab", {}, true},
};

// Text fields use these themselves.
bool belongs_to_text(CommandId id) { return id == kCopy || id == kCopyMatrix || id == kPaste || id == kSelectAll; }
bool needs_free_keyboard(CommandId id) { return id == kPreviousHead || id == kNextHead; }

}  // namespace

std::span<const CommandInfo> commands() { return kCommands; }

const CommandInfo& command_of(CommandId id) { return *std::ranges::find(kCommands, id, &CommandInfo::id); }

bool is_enabled(CommandId id, const CommandContext& context) {
  switch (id) {
    case kUndo:
      return context.can_undo;
    case kRedo:
      return context.can_redo;
    case kCopy:
    case kSelectAll:
      return context.has_selection;
    case kPaste:
    case kFill:
      return context.can_paste;
    case kTabCompare:
      return context.has_comparison;
    case kTabProjection:
      return context.has_projection;
    case kPreviousHead:
    case kNextHead:
      return context.many_heads;
    case kStop:
      return context.can_stop || context.is_stopped;
    case kTabConcat:
    case kLensGradient:
    case kLensPrecision:
    case kEnlarge:
      return !context.only_weights;
    default:
      return true;
  }
}

std::string_view command_text(const CommandInfo& command, const CommandContext& context) {
  if (command.id == kSetup && context.setup_hidden) return "Show the setup";
  if (command.id == kInspector && context.inspector_hidden) return "Show the inspector";
  if (command.id == kStop && context.is_stopped) return "Go on computing";
  return command.text;
}

std::string chord_text(const Chord& chord) {
  if (static_cast<int>(chord.key) == 0) return {};
  std::string text;
  if (chord.ctrl) text += "Ctrl+";
  if (chord.shift) text += "Shift+";
  return text + key_name(chord.key);
}

void handle_shortcuts(const CommandContext& context, bool typing, ActionQueue& queue) {
  for (const CommandInfo& command : kCommands) {
    if (!is_enabled(command.id, context) || !chord_pressed(command.chord)) continue;
    if (typing && (belongs_to_text(command.id) || needs_free_keyboard(command.id))) continue;
    queue.push(command.id);
  }
  // The other usual key for redo.
  if (context.can_redo && chord_pressed({Key::kY, true})) queue.push(kRedo);
}

}  // namespace qkv
