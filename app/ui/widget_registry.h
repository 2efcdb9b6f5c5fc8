// Where widgets are on screen, by name: for tests and for `screenshot --layout`.
#pragma once

#include <imgui.h>

#include <map>
#include <string>
#include <string_view>

namespace qkv {

// Rectangles in logical pixels of the frame being built. Names are paths such as "tab/heads",
// "matrix/q/0", "matrix/q/0/cell/1,2", "field/heads".
class WidgetRegistry {
 public:
  struct Rect {
    ImVec2 min, max;
    ImVec2 center() const { return {(min.x + max.x) / 2, (min.y + max.y) / 2}; }
  };
  void begin_frame() { rects_.clear(); }
  void add(std::string name, ImVec2 min, ImVec2 max) { rects_.insert_or_assign(std::move(name), Rect{min, max}); }
  void add_last_item(std::string name) { add(std::move(name), ImGui::GetItemRectMin(), ImGui::GetItemRectMax()); }
  const Rect* find(const std::string& name) const {
    const auto found = rects_.find(name);
    return found == rects_.end() ? nullptr : &found->second;
  }
  const std::map<std::string, Rect>& all() const { return rects_; }

 private:
  std::map<std::string, Rect> rects_;
};

}  // namespace qkv
