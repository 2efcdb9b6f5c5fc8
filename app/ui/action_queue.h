// What panels emit: edits of the session and commands of the program, carried out after the frame.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/session/action.h"

namespace qkv {

// Menu entries, shortcuts and palette rows; their records are in commands.h.
enum class CommandId {
  kNew,
  kOpen,
  kOpenTensors,
  kOpenClipboard,
  kCompare,
  kSave,
  kSaveAs,
  kExport,
  kScreenshot,
  kSaveMatrix,
  kSaveArrays,
  kQuit,
  kUndo,
  kRedo,
  kCopy,
  kCopyMatrix,
  kPaste,
  kSelectAll,
  kFill,
  kCopyNumpy,
  kCopyPytorch,
  kCopyLatex,
  kTabHead,
  kTabHeads,
  kTabConcat,
  kTabProjection,
  kTabCompare,
  kPreviousHead,
  kNextHead,
  kLensValues,
  kLensGradient,
  kLensPrecision,
  kRawTokens,
  kFit,
  kEnlarge,
  kZoomIn,
  kZoomOut,
  kSetup,
  kInspector,
  kStop,
  kThemeLight,
  kThemeDark,
  kPalette,
  kShortcuts,
  kAbout,
};

struct QueuedAction {
  Action action;
  std::uint64_t gesture = 0;  // as History::perform
};

// Filled while a frame is drawn, emptied by the App at its end.
struct ActionQueue {
  std::vector<QueuedAction> actions;
  std::vector<CommandId> commands;
  std::vector<std::filesystem::path> open_files;  // examples and recent files
  std::vector<std::string> messages;              // toasts
  std::uint64_t last_gesture = 0;                 // never reset

  void push(Action action, std::uint64_t gesture = 0) { actions.push_back({std::move(action), gesture}); }
  void push(CommandId command) { commands.push_back(command); }
  std::uint64_t new_gesture() { return ++last_gesture; }
};

}  // namespace qkv
