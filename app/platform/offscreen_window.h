// The program with an OpenGL context of its own, drawn into memory one frame at a time.
#pragma once

#include <memory>
#include <string>

#include "app/app.h"
#include "app/gl/frame_renderer.h"
#include "app/gl/framebuffer.h"
#include "app/platform/egl_context.h"
#include "app/platform/imgui_context.h"
#include "app/platform/offscreen_host.h"

namespace qkv {

// At most one at a time. Its OpenGL and ImGui contexts are current on the thread that made it while it lives.
class OffscreenWindow {
 public:
  // Shows the session of `options`. Errors: kNoDisplay where EGL or OpenGL 3.3 is missing.
  static Result<std::unique_ptr<OffscreenWindow>> open(const OffscreenOptions& options);
  OffscreenWindow(const OffscreenWindow&) = delete;
  OffscreenWindow& operator=(const OffscreenWindow&) = delete;

  App& app() { return *app_; }
  int device_width() const { return to_device(options_.width); }
  int device_height() const { return to_device(options_.height); }

  // One frame of ImGui, without drawing it.
  void build_frame();
  // At least `least` frames, then until nothing changes (results computed, glyphs loaded).
  void settle(int least);
  // Draws the newest frame; OpenGL may still be at work when this returns.
  void render() { renderer_->render(device_width(), device_height(), app_->clear_color()); }
  // Waits until OpenGL has drawn every pixel.
  void finish();

 private:
  OffscreenWindow(const OffscreenOptions& options, EglContext context)
      : options_(options), context_(std::move(context)) {}
  int to_device(int logical) const;

  OffscreenOptions options_;
  EglContext context_;
  ImGuiSession imgui_;
  std::unique_ptr<FrameRenderer> renderer_;
  std::unique_ptr<App> app_;
  Framebuffer framebuffer_;
};

}  // namespace qkv
