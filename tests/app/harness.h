// Frames of the program without a display: events go in, widgets are found by name.
#pragma once

#include <imgui.h>

#include <memory>
#include <string>
#include <string_view>

#include "app/app.h"
#include "app/platform/imgui_compat.h"
#include "app/ui/keys.h"

namespace qkv {

class Harness {
 public:
  explicit Harness(int width = 1440, int height = 900, double most_held_bytes = kMostHeldBytes);
  ~Harness();

  App& app() { return *app_; }
  void frames(int count = 1);  // lets the program settle

  bool has(const std::string& widget);
  ImVec2 center(const std::string& widget);  // fails the test where there is no such widget
  void point(const std::string& widget);     // pointer on it, one frame
  void point_at(ImVec2 position);
  void click(const std::string& widget, int button = 0);
  void double_click(const std::string& widget);
  void drag(const std::string& from, ImVec2 by, int steps = 8);
  void key(Key key, bool ctrl = false, bool shift = false);
  void type(std::string_view text);  // as typed characters, one frame each
  void wheel(float amount);

  const Matrix& trace(MatrixKind kind, int head = 0);
  std::string clipboard() const { return clipboard_text_; }
  void set_clipboard(std::string text) { clipboard_text_ = std::move(text); }

 private:
  void button(int which, bool down);

  ImGuiContext* context_;
  std::string clipboard_text_;
  compat::Clipboard clipboard_;
  NullImageStore images_;
  std::unique_ptr<App> app_;
  ImVec2 mouse_{-1, -1};
  int width_, height_;
};

}  // namespace qkv
