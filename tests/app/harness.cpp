#include "tests/app/harness.h"

#include <doctest/doctest.h>

#include "core/base/utf8.h"

namespace qkv {

Harness::Harness(int width, int height, double most_held_bytes)
    : context_(ImGui::CreateContext()), width_(width), height_(height) {
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
  map_keys(io);
  clipboard_.get = [](void* user) { return static_cast<Harness*>(user)->clipboard_text_; };
  clipboard_.set = [](void* user, const char* text) { static_cast<Harness*>(user)->clipboard_text_ = text; };
  clipboard_.user = this;
  compat::set_clipboard(clipboard_);
  app_ = std::make_unique<App>(AppServices{&images_, nullptr, [] {}, most_held_bytes}, Preferences{});
  frames(3);
}

Harness::~Harness() {
  app_.reset();
  ImGui::DestroyContext(context_);
}

void Harness::frames(int count) {
  for (int i = 0; i < count; ++i) {
    app_->prepare_fonts(1);
    ImGuiIO& io = ImGui::GetIO();
    compat::set_display(io, width_, height_, 1);
    compat::feed_mouse_position(io, mouse_);
    io.DeltaTime = 1.0f / 60;
    ImGui::NewFrame();
    app_->frame();
    ImGui::Render();
  }
}

bool Harness::has(const std::string& widget) { return app_->widgets().find(widget) != nullptr; }

ImVec2 Harness::center(const std::string& widget) {
  const WidgetRegistry::Rect* rect = app_->widgets().find(widget);
  REQUIRE_MESSAGE(rect != nullptr, "no widget ", widget);
  return rect->center();
}

void Harness::point_at(ImVec2 position) {
  mouse_ = position;
  frames(2);
}

void Harness::point(const std::string& widget) { point_at(center(widget)); }

void Harness::button(int which, bool down) {
  compat::feed_mouse_button(ImGui::GetIO(), which, down);
  frames(1);
}

void Harness::click(const std::string& widget, int which) {
  point(widget);
  button(which, true);
  button(which, false);
  frames(30);  // longer than a double click
}

void Harness::double_click(const std::string& widget) {
  point(widget);
  for (int i = 0; i < 2; ++i) {
    button(0, true);
    button(0, false);
  }
  frames(2);
}

void Harness::drag(const std::string& from, ImVec2 by, int steps) {
  point(from);
  const ImVec2 start = mouse_;
  button(0, true);
  for (int i = 1; i <= steps; ++i) {
    const float part = static_cast<float>(i) / static_cast<float>(steps);
    mouse_ = {start.x + by.x * part, start.y + by.y * part};
    frames(1);
  }
  button(0, false);
  frames(2);
}

void Harness::key(Key key, bool ctrl, bool shift) {
  ImGuiIO& io = ImGui::GetIO();
  compat::feed_modifiers(io, ctrl, shift, false, false);
  feed_key(io, key, true);
  frames(1);
  feed_key(io, key, false);
  compat::feed_modifiers(io, false, false, false, false);
  frames(2);
}

void Harness::type(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    app_->type_character(next_code_point(text, at));
    frames(1);
  }
  frames(1);
}

void Harness::wheel(float amount) {
  compat::feed_wheel(ImGui::GetIO(), 0, amount);
  frames(2);
}

const Matrix& Harness::trace(MatrixKind kind, int head) {
  const Matrix* matrix = app_->trace()->find({kind, head});
  REQUIRE(matrix != nullptr);
  return *matrix;
}

}  // namespace qkv
