#include "app/platform/offscreen_host.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "app/gl/errors.h"
#include "app/gl/readback.h"
#include "app/platform/imgui_compat.h"
#include "app/platform/offscreen_window.h"

namespace qkv {
namespace {

constexpr int kLeastFrames = 4;   // ImGui's sizes of one frame place the things of the next
constexpr int kHoverFrames = 45;  // tooltips wait until the pointer has rested
constexpr std::size_t kSuggestions = 5;

// Number of insertions, deletions and replacements from a to b.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row.back();
}

Error unknown_widget(const std::string& name, const WidgetRegistry& widgets) {
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const auto& [known, rect] : widgets.all()) near.emplace_back(edit_distance(name, known), known);
  const std::size_t count = std::min(kSuggestions, near.size());
  std::partial_sort(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(count), near.end());
  std::string message = "no widget is named \"" + name + "\"";
  for (std::size_t i = 0; i < count; ++i) message += (i == 0 ? "; near are " : ", ") + near[i].second;
  return usage_error(message + "; --layout writes them all");
}

std::string layout_of(const OffscreenOptions& options, const WidgetRegistry& widgets) {
  nlohmann::ordered_json layout;
  layout["width"] = options.width;
  layout["height"] = options.height;
  layout["scale"] = options.scale;
  nlohmann::ordered_json& rects = layout["widgets"] = nlohmann::ordered_json::object();
  for (const auto& [name, rect] : widgets.all())
    rects[name] = {rect.min.x, rect.min.y, rect.max.x - rect.min.x, rect.max.y - rect.min.y};
  return layout.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

Result<OffscreenPicture> draw_offscreen(const OffscreenOptions& options) {
  const Result<std::unique_ptr<OffscreenWindow>> opened = OffscreenWindow::open(options);
  if (!opened) return opened.error();
  OffscreenWindow& window = *opened.value();
  App& app = window.app();
  if (!options.compare.empty()) app.compare_with(options.compare);
  window.settle(kLeastFrames);
  if (!options.hover.empty()) {
    const WidgetRegistry::Rect* rect = app.widgets().find(options.hover);
    if (rect == nullptr) return unknown_widget(options.hover, app.widgets());
    compat::feed_mouse_position(ImGui::GetIO(), rect->center());
    window.settle(kHoverFrames);
  }
  window.render();
  OffscreenPicture picture;
  picture.image = read_framebuffer(window.device_width(), window.device_height());
  picture.layout_json = layout_of(options, app.widgets());
  if (const std::string errors = take_gl_errors(); !errors.empty())
    return Error{ErrorCode::kNoDisplay, "OpenGL failed while drawing: " + errors};
  return picture;
}

}  // namespace qkv
