#include "app/ui/preferences.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/base/file.h"

namespace qkv {
namespace {

constexpr std::size_t kMaxRecent = 8;

template <class T>
void read_number(const nlohmann::json& json, const char* key, T low, T high, T& out) {
  const auto found = json.find(key);
  if (found != json.end() && found->is_number())
    out = static_cast<T>(std::clamp(found->get<double>(), double(low), double(high)));
}

void read_flag(const nlohmann::json& json, const char* key, bool& out) {
  const auto found = json.find(key);
  if (found != json.end() && found->is_boolean()) out = found->get<bool>();
}

}  // namespace

std::filesystem::path preferences_path() {
  if (const char* config = std::getenv("XDG_CONFIG_HOME"); config != nullptr && *config != '\0')
    return std::filesystem::path(config) / "qkvlab" / "preferences.json";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return std::filesystem::path(home) / ".config" / "qkvlab" / "preferences.json";
  return {};
}

Preferences load_preferences(const std::filesystem::path& path) {
  Preferences preferences;
  const Result<Bytes> bytes = read_file(path, 1 << 20);
  if (!bytes) return preferences;
  const nlohmann::json json = nlohmann::json::parse(as_text(bytes.value()), nullptr, false);
  if (!json.is_object()) return preferences;
  read_number(json, "window_width", 640, 16384, preferences.window_width);
  read_number(json, "window_height", 480, 16384, preferences.window_height);
  read_number(json, "left_width", 200.0f, 600.0f, preferences.left_width);
  read_number(json, "right_width", 200.0f, 600.0f, preferences.right_width);
  read_flag(json, "setup_hidden", preferences.setup_hidden);
  read_flag(json, "inspector_hidden", preferences.inspector_hidden);
  if (json.contains("theme") && json["theme"] == "dark") preferences.theme = ThemeName::kDark;
  if (json.contains("export_folder") && json["export_folder"].is_string())
    preferences.export_folder = json["export_folder"].get<std::string>();
  if (json.contains("recent") && json["recent"].is_array())
    for (const auto& item : json["recent"])
      if (item.is_string() && preferences.recent.size() < kMaxRecent) preferences.recent.push_back(item);
  return preferences;
}

Status save_preferences(const Preferences& preferences, const std::filesystem::path& path) {
  if (path.empty()) return Error{ErrorCode::kCannotWrite, "no home folder for preferences: set HOME"};
  std::error_code failed;
  std::filesystem::create_directories(path.parent_path(), failed);
  const nlohmann::json json = {{"theme", preferences.theme == ThemeName::kDark ? "dark" : "light"},
                               {"window_width", preferences.window_width},
                               {"window_height", preferences.window_height},
                               {"left_width", preferences.left_width},
                               {"right_width", preferences.right_width},
                               {"setup_hidden", preferences.setup_hidden},
                               {"inspector_hidden", preferences.inspector_hidden},
                               {"recent", preferences.recent},
                               {"export_folder", preferences.export_folder}};
  return write_file_atomically(path, json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace qkv
