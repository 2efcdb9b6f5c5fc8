#include "app/assets.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "core/session/session_file.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".qkv.json";
constexpr std::array<std::string_view, 7> kMenuOrder{"worked_example",     "cat_sleeps",           "thinking_machines",
                                                     "long_distance",      "long_distance_causal", "saturation_scaled",
                                                     "saturation_unscaled"};

std::size_t menu_place(const std::string& name) {
  return static_cast<std::size_t>(std::find(kMenuOrder.begin(), kMenuOrder.end(), name) - kMenuOrder.begin());
}

std::string title_of(const fs::path& path, const std::string& name) {
  const Result<Session> session = read_session(path);
  return session.ok() && !session.value().title.empty() ? session.value().title : name;
}

}  // namespace

std::optional<fs::path> assets_folder() {
  std::error_code problem;
  std::vector<fs::path> places;
  if (const char* given = std::getenv("QKVLAB_ASSETS"); given != nullptr && *given != '\0') places.emplace_back(given);
  if (const fs::path program = fs::read_symlink("/proc/self/exe", problem); !problem) {
    places.push_back(program.parent_path().parent_path() / "share" / "qkvlab");
  }
  places.emplace_back(QKV_SOURCE_ASSETS);
  for (const fs::path& place : places) {
    if (fs::is_directory(place, problem)) return place;
  }
  return std::nullopt;
}

std::vector<Example> examples() {
  const std::optional<fs::path> assets = assets_folder();
  if (!assets) return {};
  std::vector<Example> found;
  std::error_code problem;
  for (fs::directory_iterator entry(*assets / "sessions", problem), end; !problem && entry != end;
       entry.increment(problem)) {
    std::string name = entry->path().filename().string();
    if (name.size() <= kExtension.size() || !name.ends_with(kExtension)) continue;
    name.resize(name.size() - kExtension.size());
    found.push_back({name, title_of(entry->path(), name), entry->path()});
  }
  std::sort(found.begin(), found.end(), [](const Example& a, const Example& b) {
    return std::pair(menu_place(a.name), a.name) < std::pair(menu_place(b.name), b.name);
  });
  return found;
}

std::optional<fs::path> find_example(const std::string& name) {
  const std::optional<fs::path> assets = assets_folder();
  if (!assets || name.empty() || name.find('/') != std::string::npos) return std::nullopt;
  const fs::path path = *assets / "sessions" / (name + std::string(kExtension));
  std::error_code problem;
  if (!fs::is_regular_file(path, problem)) return std::nullopt;
  return path;
}

}  // namespace qkv
