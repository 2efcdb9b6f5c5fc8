#include "app/platform/window_host.h"

#include <algorithm>
#include <chrono>
#include <clocale>
#include <cmath>
#include <limits>
#include <utility>

#include "app/app.h"
#include "app/gl/errors.h"
#include "app/gl/frame_renderer.h"
#include "app/gl/readback.h"
#include "app/platform/glfw_platform.h"
#include "app/platform/imgui_context.h"

namespace qkv {
namespace {

// ImGui needs a few frames to settle after an event: sizes of one frame place the things of the next.
constexpr int kSettleFrames = 3;
// Drivers may ignore the wish for vertical sync; pictures need not come faster than this.
constexpr double kLeastFrameSeconds = 1.0 / 125;
// Input that has piled up is worked off without drawing, but the picture never stands still for longer.
constexpr double kMostCatchUpSeconds = 0.05;

class Clock {
 public:
  double now() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// The loop: waits, and draws only when something changed.
class WindowLoop {
 public:
  WindowLoop(GlfwPlatform& platform, FrameRenderer& renderer, App& app)
      : platform_(platform), renderer_(renderer), app_(app) {}

  void run() {
    while (!app_.should_quit()) {
      wait_for_work();
      for (const auto& path : platform_.take_dropped_files()) app_.open_file(path);
      if (platform_.take_close_request()) app_.request_close();
      if (is_frame_due()) draw();
    }
  }

 private:
  bool is_frame_due() const {
    return settle_ > 0 || platform_.input().pending() || platform_.input().holding() || app_.wants_frame_now();
  }

  void wait_for_work() {
    const bool hidden = platform_.framebuffer_size().width <= 0;
    if (is_frame_due() && !hidden) {
      platform_.wait(std::max(0.0, last_present_ + kLeastFrameSeconds - clock_.now()));
    } else {
      const double seconds = hidden ? std::numeric_limits<double>::infinity() : app_.seconds_to_next_frame();
      const double deadline = clock_.now() + seconds;
      platform_.wait(std::max(seconds, 0.001));
      if (clock_.now() >= deadline) settle_ = std::max(settle_, 1);
    }
    if (platform_.take_event()) settle_ = kSettleFrames;
  }

  void draw() {
    const PixelSize size = platform_.framebuffer_size();
    if (size.width <= 0 || size.height <= 0) return;
    const double start = clock_.now();
    do {
      build_frame(size);
    } while (platform_.input().pending() && clock_.now() - start < kMostCatchUpSeconds && !app_.should_quit());
    // An edit changed what the panels drew before it: the picture that is shown already has its results.
    if (app_.wants_frame_now() && !app_.should_quit()) build_frame(size);
    present(size);
    settle_ = std::max(0, settle_ - 1);
  }

  // One frame of ImGui, without drawing it.
  void build_frame(PixelSize size) {
    ImGuiIO& io = ImGui::GetIO();
    const bool fonts_rebuilt = app_.prepare_fonts(platform_.scale());
    renderer_.begin_frame(fonts_rebuilt);
    compat::set_display(io, size.width, size.height, platform_.scale());
    const double now = clock_.now();
    io.DeltaTime = static_cast<float>(std::max(now - last_frame_, 1e-4));
    last_frame_ = now;
    for (const char32_t c : platform_.input().feed(io)) app_.type_character(c);
    ImGui::NewFrame();
    app_.frame();
    ImGui::Render();
  }

  void present(PixelSize size) {
    renderer_.render(size.width, size.height, app_.clear_color());
    if (app_.screenshot_wanted()) app_.deliver_screenshot(read_framebuffer(size.width, size.height));
    platform_.set_title(app_.window_title());
    platform_.set_cursor(ImGui::GetMouseCursor());
    platform_.swap();
    check_gl("showing a frame");
    last_present_ = clock_.now();
  }

  GlfwPlatform& platform_;
  FrameRenderer& renderer_;
  App& app_;
  Clock clock_;
  int settle_ = kSettleFrames;
  double last_frame_ = 0, last_present_ = 0;
};

}  // namespace

Status run_window(WindowOptions options) {
  // Input methods need the person's character set; numbers stay independent of the locale.
  std::setlocale(LC_CTYPE, "");
  const std::filesystem::path preferences_file = preferences_path();
  const Preferences preferences = load_preferences(preferences_file);
  Result<std::unique_ptr<GlfwPlatform>> opened =
      GlfwPlatform::open(preferences.window_width, preferences.window_height, options.scale);
  if (!opened) return opened.error();
  GlfwPlatform& platform = *opened.value();

  const ImGuiSession imgui;
  platform.connect_imgui();
  const Result<std::unique_ptr<FrameRenderer>> renderer = FrameRenderer::create();
  if (!renderer) return renderer.error();

  App app({&renderer.value()->images(), &renderer.value()->heatmaps(), [&platform] { platform.wake(); }}, preferences);
  if (options.file) app.open_file(std::move(*options.file));
  WindowLoop(platform, *renderer.value(), app).run();

  if (const std::optional<PixelSize> size = platform.normal_size()) {
    app.preferences().window_width = size->width;
    app.preferences().window_height = size->height;
  }
  // A folder that cannot be written to costs the memory of the window's size, nothing else.
  if (!preferences_file.empty()) (void)save_preferences(app.preferences(), preferences_file);
  return Done{};
}

}  // namespace qkv
