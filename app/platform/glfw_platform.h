// One window with OpenGL 3.3 through GLFW, and the events that it gets.
#pragma once

#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/platform/imgui_compat.h"
#include "app/platform/input_queue.h"
#include "core/base/result.h"

struct GLFWwindow;
struct GLFWcursor;

namespace qkv {

struct PixelSize {
  int width = 0, height = 0;
};

// At most one at a time, on the main thread. Its OpenGL context is current and loaded while it lives.
class GlfwPlatform {
 public:
  // A visible window of this size in logical pixels, or as large as the monitor has room for. `scale`: device
  // pixels per logical pixel; absent = the monitor's. Errors: kNoDisplay.
  static Result<std::unique_ptr<GlfwPlatform>> open(int width, int height, std::optional<float> scale);
  ~GlfwPlatform();
  GlfwPlatform(const GlfwPlatform&) = delete;
  GlfwPlatform& operator=(const GlfwPlatform&) = delete;

  // Gives the current ImGui context this window's clipboard and keys.
  void connect_imgui();

  float scale() const { return scale_; }
  PixelSize framebuffer_size() const;            // device pixels; 0 × 0 when minimized
  std::optional<PixelSize> normal_size() const;  // logical pixels; absent while maximized or minimized
  void set_title(const std::string& title);
  void set_cursor(int imgui_cursor);
  void swap();

  // Takes events in; returns once there was one, wake() was called, or `seconds` are over (0 = at once).
  void wait(double seconds);
  void wake();  // from any thread

  InputQueue& input() { return input_; }
  // Something happened since the last call: input, a new size, exposure, wake().
  bool take_event();
  bool take_close_request();
  std::vector<std::filesystem::path> take_dropped_files();

 private:
  GlfwPlatform() = default;
  Status create(int width, int height, std::optional<float> scale);
  void install_callbacks();
  void fit_to_monitor(int width, int height);
  ImVec2 to_logical(double x, double y) const;
  void on_button(int button, bool down);

  bool initialized_ = false;
  GLFWwindow* window_ = nullptr;
  std::array<GLFWcursor*, ImGuiMouseCursor_COUNT> cursors_{};
  int cursor_ = ImGuiMouseCursor_Arrow;
  compat::Clipboard clipboard_{};
  std::optional<float> fixed_scale_;
  float scale_ = 1;
  std::string title_;
  InputQueue input_;
  std::atomic<bool> event_{false};
  bool close_requested_ = false;
  std::vector<std::filesystem::path> dropped_;
};

}  // namespace qkv
