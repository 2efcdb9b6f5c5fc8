#include "app/platform/offscreen_host.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "app/app.h"
#include "app/gl/errors.h"
#include "app/gl/frame_renderer.h"
#include "app/gl/framebuffer.h"
#include "app/gl/readback.h"
#include "app/platform/egl_context.h"
#include "app/platform/imgui_compat.h"
#include "app/platform/imgui_context.h"
#include "app/ui/keys.h"

namespace qkv {
namespace {

constexpr float kFrameSeconds = 1.0f / 60;
constexpr int kLeastFrames = 4;   // ImGui's sizes of one frame place the things of the next
constexpr int kHoverFrames = 45;  // tooltips wait until the pointer has rested
constexpr int kMostFrames = 300;
constexpr std::size_t kSuggestions = 5;

// Frames of the program without a window; the newest is what render() draws.
class OffscreenLoop {
 public:
  OffscreenLoop(const OffscreenOptions& options, FrameRenderer& renderer, App& app)
      : options_(options), renderer_(renderer), app_(app) {}

  int device_width() const { return to_device(options_.width); }
  int device_height() const { return to_device(options_.height); }

  // At least `least` frames, then until nothing changes.
  void settle(int least) {
    for (int i = 0; i < kMostFrames; ++i) {
      build_frame();
      app_.wait_for_results();
      if (i + 1 >= least && !app_.wants_frame_now()) break;
    }
    build_frame();  // shows what was waited for
  }

  void render() { renderer_.render(device_width(), device_height(), app_.clear_color()); }

 private:
  int to_device(int logical) const {
    return static_cast<int>(std::lround(static_cast<float>(logical) * options_.scale));
  }

  void build_frame() {
    ImGuiIO& io = ImGui::GetIO();
    const bool fonts_rebuilt = app_.prepare_fonts(options_.scale);
    renderer_.begin_frame(fonts_rebuilt);
    compat::set_display(io, device_width(), device_height(), options_.scale);
    io.DeltaTime = kFrameSeconds;
    ImGui::NewFrame();
    app_.frame();
    ImGui::Render();
  }

  const OffscreenOptions& options_;
  FrameRenderer& renderer_;
  App& app_;
};

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
  Result<EglContext> context = EglContext::create();
  if (!context) return context.error();
  const ImGuiSession imgui;
  map_keys(ImGui::GetIO());
  const Result<std::unique_ptr<FrameRenderer>> renderer = FrameRenderer::create();
  if (!renderer) return renderer.error();

  Preferences preferences;
  preferences.theme = options.theme;
  preferences.window_width = options.width;
  preferences.window_height = options.height;
  App app({&renderer.value()->images(), &renderer.value()->heatmaps(), [] {}}, preferences);
  app.open(options.session, {});
  if (!options.compare.empty()) app.compare_with(options.compare);
  OffscreenLoop loop(options, *renderer.value(), app);
  const Result<Framebuffer> framebuffer = create_framebuffer(loop.device_width(), loop.device_height());
  if (!framebuffer) return framebuffer.error();

  compat::feed_no_mouse(ImGui::GetIO());
  loop.settle(kLeastFrames);
  if (!options.hover.empty()) {
    const WidgetRegistry::Rect* rect = app.widgets().find(options.hover);
    if (rect == nullptr) return unknown_widget(options.hover, app.widgets());
    compat::feed_mouse_position(ImGui::GetIO(), rect->center());
    loop.settle(kHoverFrames);
  }
  loop.render();
  OffscreenPicture picture;
  picture.image = read_framebuffer(loop.device_width(), loop.device_height());
  picture.layout_json = layout_of(options, app.widgets());
  if (const std::string errors = take_gl_errors(); !errors.empty())
    return Error{ErrorCode::kNoDisplay, "OpenGL failed while drawing: " + errors};
  return picture;
}

}  // namespace qkv
