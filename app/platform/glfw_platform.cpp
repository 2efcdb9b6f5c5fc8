#include "app/platform/glfw_platform.h"

// GLFW's own OpenGL header stays out: glad declares OpenGL.
#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#include <glad/gl.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "app/ui/keys.h"

namespace qkv {
namespace {

constexpr int kLeastWidth = 640, kLeastHeight = 420;  // logical pixels

std::string glfw_reason() {
  const char* description = nullptr;
  glfwGetError(&description);
  return description == nullptr ? "unknown reason" : description;
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

Error no_display() {
  std::string message = "no display: ";
  if (is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")) {
    message.append(glfw_reason()).append("; correct DISPLAY");
  } else {
    message.append("set DISPLAY or WAYLAND_DISPLAY");
  }
  message.append(", or use `qkvlab render` and `qkvlab screenshot`, which need none");
  return {ErrorCode::kNoDisplay, std::move(message)};
}

Error no_opengl(const std::string& reason) {
  return {ErrorCode::kNoDisplay, "no OpenGL 3.3 on this display: " + reason +
                                     "; install the graphics driver, or use `qkvlab render`, which needs none"};
}

// Steps of a quarter: at 1.04 (100 dpi) everything would lie between pixels for no visible gain.
float tidy_scale(float scale) {
  if (!(scale > 0)) return 1;
  return std::clamp(std::round(scale * 4) / 4, 0.5f, 4.0f);
}

GlfwPlatform& of(GLFWwindow* window) { return *static_cast<GlfwPlatform*>(glfwGetWindowUserPointer(window)); }

}  // namespace

Result<std::unique_ptr<GlfwPlatform>> GlfwPlatform::open(int width, int height, std::optional<float> scale) {
  std::unique_ptr<GlfwPlatform> platform(new GlfwPlatform);
  if (Status created = platform->create(width, height, scale); !created) return created.error();
  return platform;
}

Status GlfwPlatform::create(int width, int height, std::optional<float> scale) {
  if (glfwInit() != GLFW_TRUE) return no_display();
  initialized_ = true;
  fixed_scale_ = scale;
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
  glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
  glfwWindowHint(GLFW_OPENGL_FORWARD_COMPAT, GLFW_TRUE);
  glfwWindowHint(GLFW_DEPTH_BITS, 0);
  glfwWindowHint(GLFW_STENCIL_BITS, 0);
  glfwWindowHint(GLFW_VISIBLE, GLFW_FALSE);  // until its size is right
  glfwWindowHintString(GLFW_X11_CLASS_NAME, "qkvlab");
  glfwWindowHintString(GLFW_X11_INSTANCE_NAME, "qkvlab");
  window_ = glfwCreateWindow(width, height, "qkvlab", nullptr, nullptr);
  if (window_ == nullptr) return no_opengl(glfw_reason());
  glfwMakeContextCurrent(window_);
  if (gladLoadGL(glfwGetProcAddress) < GLAD_MAKE_VERSION(3, 3)) return no_opengl("the driver offers less");
  glfwSwapInterval(1);

  float monitor_scale = 1;
  glfwGetWindowContentScale(window_, &monitor_scale, nullptr);
  scale_ = fixed_scale_.value_or(tidy_scale(monitor_scale));
  fit_to_monitor(width, height);
  install_callbacks();
  glfwShowWindow(window_);
  return Done{};
}

GlfwPlatform::~GlfwPlatform() {
  for (GLFWcursor* cursor : cursors_)
    if (cursor != nullptr) glfwDestroyCursor(cursor);
  if (window_ != nullptr) glfwDestroyWindow(window_);
  if (initialized_) glfwTerminate();
}

// Window coordinates are device pixels on X11 and logical ones elsewhere; the framebuffer's size tells.
void GlfwPlatform::fit_to_monitor(int width, int height) {
  int window_width = 0, window_height = 0;
  glfwGetWindowSize(window_, &window_width, &window_height);
  const PixelSize device = framebuffer_size();
  const float ratio =
      window_width > 0 && device.width > 0 ? static_cast<float>(device.width) / static_cast<float>(window_width) : 1.0f;
  const auto to_window = [&](int logical) {
    return static_cast<int>(std::lround(static_cast<float>(logical) * scale_ / ratio));
  };
  int x = 0, y = 0, room_width = 0, room_height = 0;
  if (GLFWmonitor* monitor = glfwGetPrimaryMonitor(); monitor != nullptr)
    glfwGetMonitorWorkarea(monitor, &x, &y, &room_width, &room_height);
  const int wanted_width = to_window(width), wanted_height = to_window(height);
  glfwSetWindowSize(window_, room_width > 0 ? std::min(wanted_width, room_width) : wanted_width,
                    room_height > 0 ? std::min(wanted_height, room_height) : wanted_height);
  const int least_width = to_window(kLeastWidth), least_height = to_window(kLeastHeight);
  glfwSetWindowSizeLimits(window_, room_width > 0 ? std::min(least_width, room_width) : least_width,
                          room_height > 0 ? std::min(least_height, room_height) : least_height, GLFW_DONT_CARE,
                          GLFW_DONT_CARE);
}

void GlfwPlatform::install_callbacks() {
  glfwSetWindowUserPointer(window_, this);
  glfwSetCursorPosCallback(window_, [](GLFWwindow* w, double x, double y) {
    of(w).input_.move(of(w).to_logical(x, y));
    of(w).event_ = true;
  });
  glfwSetCursorEnterCallback(window_, [](GLFWwindow* w, int entered) {
    if (entered == GLFW_FALSE && !of(w).input_.holding()) of(w).input_.leave();
    of(w).event_ = true;
  });
  glfwSetMouseButtonCallback(
      window_, [](GLFWwindow* w, int button, int action, int) { of(w).on_button(button, action == GLFW_PRESS); });
  glfwSetScrollCallback(window_, [](GLFWwindow* w, double x, double y) {
    of(w).input_.wheel(static_cast<float>(x), static_cast<float>(y));
    of(w).event_ = true;
  });
  glfwSetKeyCallback(window_, [](GLFWwindow* w, int key, int, int action, int) {
    if (key != GLFW_KEY_UNKNOWN && action != GLFW_REPEAT) of(w).input_.key(static_cast<Key>(key), action == GLFW_PRESS);
    of(w).event_ = true;
  });
  glfwSetCharCallback(window_, [](GLFWwindow* w, unsigned c) {
    of(w).input_.character(static_cast<char32_t>(c));
    of(w).event_ = true;
  });
  glfwSetWindowFocusCallback(window_, [](GLFWwindow* w, int focused) {
    of(w).input_.focus(focused == GLFW_TRUE);
    of(w).event_ = true;
  });
  glfwSetFramebufferSizeCallback(window_, [](GLFWwindow* w, int, int) { of(w).event_ = true; });
  glfwSetWindowRefreshCallback(window_, [](GLFWwindow* w) { of(w).event_ = true; });
  glfwSetWindowIconifyCallback(window_, [](GLFWwindow* w, int) { of(w).event_ = true; });
  glfwSetWindowContentScaleCallback(window_, [](GLFWwindow* w, float x, float) {
    of(w).scale_ = of(w).fixed_scale_.value_or(tidy_scale(x));
    of(w).event_ = true;
  });
  glfwSetWindowCloseCallback(window_, [](GLFWwindow* w) {
    glfwSetWindowShouldClose(w, GLFW_FALSE);  // the program decides
    of(w).close_requested_ = true;
    of(w).event_ = true;
  });
  glfwSetDropCallback(window_, [](GLFWwindow* w, int count, const char** paths) {
    for (int i = 0; i < count; ++i) of(w).dropped_.emplace_back(paths[i]);
    of(w).event_ = true;
  });
}

void GlfwPlatform::on_button(int button, bool down) {
  input_.button(button, down);
  event_ = true;
  if (down) return;
  // After a drag that ended outside no leave event follows.
  double x = 0, y = 0;
  int width = 0, height = 0;
  glfwGetCursorPos(window_, &x, &y);
  glfwGetWindowSize(window_, &width, &height);
  if (x < 0 || y < 0 || x >= width || y >= height) input_.leave();
}

ImVec2 GlfwPlatform::to_logical(double x, double y) const {
  int width = 0, height = 0;
  glfwGetWindowSize(window_, &width, &height);
  const PixelSize device = framebuffer_size();
  if (width <= 0 || height <= 0) return {0, 0};
  return {static_cast<float>(x * device.width / width / static_cast<double>(scale_)),
          static_cast<float>(y * device.height / height / static_cast<double>(scale_))};
}

void GlfwPlatform::connect_imgui() {
  map_keys(ImGui::GetIO());
  clipboard_.user = window_;
  clipboard_.get = [](void* user) -> std::string {
    const char* text = glfwGetClipboardString(static_cast<GLFWwindow*>(user));
    return text == nullptr ? "" : text;
  };
  clipboard_.set = [](void* user, const char* text) { glfwSetClipboardString(static_cast<GLFWwindow*>(user), text); };
  compat::set_clipboard(clipboard_);
}

PixelSize GlfwPlatform::framebuffer_size() const {
  PixelSize size;
  glfwGetFramebufferSize(window_, &size.width, &size.height);
  return glfwGetWindowAttrib(window_, GLFW_ICONIFIED) == GLFW_TRUE ? PixelSize{} : size;
}

std::optional<PixelSize> GlfwPlatform::normal_size() const {
  const PixelSize device = framebuffer_size();
  if (device.width <= 0 || device.height <= 0) return std::nullopt;
  if (glfwGetWindowAttrib(window_, GLFW_MAXIMIZED) == GLFW_TRUE) return std::nullopt;
  return PixelSize{static_cast<int>(std::lround(static_cast<float>(device.width) / scale_)),
                   static_cast<int>(std::lround(static_cast<float>(device.height) / scale_))};
}

void GlfwPlatform::set_title(const std::string& title) {
  if (title == title_) return;
  title_ = title;
  glfwSetWindowTitle(window_, title.c_str());
}

void GlfwPlatform::set_cursor(int imgui_cursor) {
  if (imgui_cursor == cursor_) return;
  cursor_ = imgui_cursor;
  int shape = GLFW_ARROW_CURSOR;
  switch (imgui_cursor) {
    case ImGuiMouseCursor_TextInput:
      shape = GLFW_IBEAM_CURSOR;
      break;
    case ImGuiMouseCursor_ResizeNS:
      shape = GLFW_VRESIZE_CURSOR;
      break;
    case ImGuiMouseCursor_ResizeEW:
      shape = GLFW_HRESIZE_CURSOR;
      break;
    case ImGuiMouseCursor_Hand:
      shape = GLFW_HAND_CURSOR;
      break;
    case ImGuiMouseCursor_ResizeAll:
      shape = GLFW_CROSSHAIR_CURSOR;
      break;
    default:
      break;
  }
  if (imgui_cursor < 0 || imgui_cursor >= ImGuiMouseCursor_COUNT) return;
  GLFWcursor*& cursor = cursors_[static_cast<std::size_t>(imgui_cursor)];
  if (cursor == nullptr) cursor = glfwCreateStandardCursor(shape);
  glfwSetCursor(window_, cursor);
}

void GlfwPlatform::swap() { glfwSwapBuffers(window_); }

void GlfwPlatform::wait(double seconds) {
  if (seconds <= 0) {
    glfwPollEvents();
  } else if (std::isinf(seconds)) {
    glfwWaitEvents();
  } else {
    glfwWaitEventsTimeout(seconds);
  }
}

void GlfwPlatform::wake() {
  event_ = true;
  glfwPostEmptyEvent();
}

bool GlfwPlatform::take_event() { return event_.exchange(false); }
bool GlfwPlatform::take_close_request() { return std::exchange(close_requested_, false); }
std::vector<std::filesystem::path> GlfwPlatform::take_dropped_files() { return std::exchange(dropped_, {}); }

}  // namespace qkv
