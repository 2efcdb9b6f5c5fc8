#include "app/platform/offscreen_window.h"

#include <cmath>

#include "app/platform/imgui_compat.h"
#include "app/ui/keys.h"

namespace qkv {
namespace {

constexpr float kFrameSeconds = 1.0f / 60;
constexpr int kMostFrames = 300;

}  // namespace

Result<std::unique_ptr<OffscreenWindow>> OffscreenWindow::open(const OffscreenOptions& options) {
  Result<EglContext> context = EglContext::create();
  if (!context) return context.error();
  std::unique_ptr<OffscreenWindow> window(new OffscreenWindow(options, std::move(context).value()));
  map_keys(ImGui::GetIO());
  Result<std::unique_ptr<FrameRenderer>> renderer = FrameRenderer::create();
  if (!renderer) return renderer.error();
  window->renderer_ = std::move(renderer).value();

  Preferences preferences;
  preferences.theme = options.theme;
  preferences.window_width = options.width;
  preferences.window_height = options.height;
  const AppServices services{&window->renderer_->images(), &window->renderer_->heatmaps(), [] {}};
  window->app_ = std::make_unique<App>(services, preferences);
  window->app_->open(options.session, {});
  Result<Framebuffer> framebuffer = create_framebuffer(window->device_width(), window->device_height());
  if (!framebuffer) return framebuffer.error();
  window->framebuffer_ = std::move(framebuffer).value();
  compat::feed_no_mouse(ImGui::GetIO());
  return window;
}

int OffscreenWindow::to_device(int logical) const {
  return static_cast<int>(std::lround(static_cast<float>(logical) * options_.scale));
}

void OffscreenWindow::build_frame() {
  ImGuiIO& io = ImGui::GetIO();
  const bool fonts_rebuilt = app_->prepare_fonts(options_.scale);
  renderer_->begin_frame(fonts_rebuilt);
  compat::set_display(io, device_width(), device_height(), options_.scale);
  io.DeltaTime = kFrameSeconds;
  ImGui::NewFrame();
  app_->frame();
  ImGui::Render();
}

void OffscreenWindow::settle(int least) {
  for (int i = 0; i < kMostFrames; ++i) {
    build_frame();
    app_->wait_for_results();
    if (i + 1 >= least && !app_->wants_frame_now()) break;
  }
  build_frame();  // shows what was waited for
}

void OffscreenWindow::finish() { glFinish(); }

}  // namespace qkv
