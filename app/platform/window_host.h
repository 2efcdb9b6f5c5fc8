// The real window: GLFW, OpenGL 3.3, and the loop that draws only when something changed.
#pragma once

#include <filesystem>
#include <optional>

#include "core/session/session.h"

namespace qkv {

struct WindowOptions {
  Session session;              // shown first
  std::filesystem::path path;   // where Save writes; empty for none
  std::filesystem::path asked;  // tensors that a dialog asks about, over the session; empty for none
  std::optional<float> scale;   // device pixels per logical pixel; absent = the monitor's
};

// Runs until the person quits. Preferences are read before and written after. Errors: kNoDisplay with one line
// that says what is missing (no display, OpenGL older than 3.3).
Status run_window(WindowOptions options);

}  // namespace qkv
