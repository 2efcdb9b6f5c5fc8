#include "app/panels/modal.h"

#include <algorithm>
#include <cmath>

namespace qkv {

bool begin_modal(Ui& ui, const char* name, std::string_view title, ImVec2 size, bool& open, bool& just_opened) {
  if (!open) return false;
  if (just_opened) {
    ImGui::OpenPopup(name);
    ui.focus.clear();
    just_opened = false;
  }
  const ImVec2 screen = ImGui::GetIO().DisplaySize;
  size = {std::min(size.x, screen.x - 32), std::min(size.y, screen.y - 32)};
  ImGui::SetNextWindowPos({std::floor((screen.x - size.x) / 2), std::floor((screen.y - size.y) / 2)});
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {20, 16});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 10);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  if (!ImGui::BeginPopupModal(name, nullptr,
                              ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoMove |
                                  ImGuiWindowFlags_NoScrollbar)) {
    ImGui::PopStyleVar(3);
    open = false;
    return false;
  }
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_text(ui, ImGui::GetWindowDrawList(), FontRole::kBold14, at, ui.colors().text, title);
  ImGui::Dummy({1, 32});
  return true;
}

void end_modal(bool open) {
  if (!open) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
  ImGui::PopStyleVar(3);
}

int modal_buttons(Ui& ui, const std::string& name, std::string_view main, std::string_view other,
                  std::string_view cancel, bool enabled) {
  const ImVec2 corner{ImGui::GetWindowPos().x + ImGui::GetWindowSize().x - 20,
                      ImGui::GetWindowPos().y + ImGui::GetWindowSize().y - 16};
  float right = corner.x;
  int pressed = 0;
  const auto button = [&](std::string_view text, int number, bool primary, const char* id, bool on = true) {
    if (text.empty()) return;
    const float width = std::max(84.0f, text_width(ui, FontRole::kText13, text) + 32);
    if (text_button(ui, name + "/" + id, {{right - width, corner.y - 32}, {right, corner.y}}, text, primary, on))
      pressed = number;
    right -= width + 8;
  };
  button(main, 1, true, "ok", enabled);
  button(cancel, 2, false, "cancel");
  button(other, 3, false, "other");
  return pressed;
}

}  // namespace qkv
