// The real window: GLFW, OpenGL 3.3, and the loop that draws only when something changed.
#pragma once

#include <memory>
#include <optional>

#include "app/panels/opening.h"

namespace qkv {

struct WindowOptions {
  std::unique_ptr<BegunFile> file;  // opened first; null = the worked example
  std::optional<float> scale;       // device pixels per logical pixel; absent = the monitor's
};

// Runs until the person quits. Preferences are read before and written after. Errors: kNoDisplay with one line
// that says what is missing (no display, OpenGL older than 3.3).
Status run_window(WindowOptions options);

}  // namespace qkv
