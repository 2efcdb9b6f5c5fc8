// What the program remembers between runs, apart from sessions.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/figure/color.h"

namespace qkv {

struct Preferences {
  ThemeName theme = ThemeName::kLight;
  int window_width = 1440, window_height = 900;  // logical pixels
  float left_width = 252, right_width = 276;     // panels, logical pixels
  bool setup_hidden = false, inspector_hidden = false;
  std::vector<std::string> recent;  // session files, newest first, at most 8
  std::string export_folder;        // where the last export went
};

// $XDG_CONFIG_HOME/qkvlab/preferences.json, else ~/.config/…; empty where neither is known.
std::filesystem::path preferences_path();

// A missing, unreadable or damaged file gives the defaults: preferences never stop the program.
Preferences load_preferences(const std::filesystem::path& path);
// Creates the folder. Errors: kCannotWrite.
Status save_preferences(const Preferences& preferences, const std::filesystem::path& path);

}  // namespace qkv
