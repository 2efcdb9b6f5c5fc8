// The stage between its side panels, each of which can be dragged wider and hidden.
#include <algorithm>

#include "app/app_impl.h"

namespace qkv {
namespace {

constexpr float kLeastStage = 420, kLeastLeft = 220, kLeastRight = 240, kMostPanel = 520;

// A scrolling panel with room around its content.
void begin_panel(const Ui& ui, const char* name, ImVec2 min, ImVec2 max) {
  ImGui::GetWindowDrawList()->AddRectFilled(min, max, to_u32(ui.colors().panel));
  ImGui::SetCursorScreenPos(min);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {16, 18});
  ImGui::BeginChild(name, {max.x - min.x, max.y - min.y}, false,
                    ImGuiWindowFlags_AlwaysUseWindowPadding | ImGuiWindowFlags_NoNav);
}

void end_panel() {
  ImGui::EndChild();
  ImGui::PopStyleVar();
}

// The chevron that hides or shows a panel, around `center`.
void draw_panel_button(Ui& ui, const char* name, ImVec2 center, bool points_left, CommandId command,
                       const CommandContext& context, ActionQueue& queue) {
  constexpr float kHalfWidth = 9, kHalfHeight = 14;
  const ImVec2 min{center.x - kHalfWidth, center.y - kHalfHeight}, max{center.x + kHalfWidth, center.y + kHalfHeight};
  ImGui::SetCursorScreenPos(min);
  // A window of its own, over the tabs beside it.
  ImGui::BeginChild(name, {max.x - min.x, max.y - min.y}, false, ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoNav);
  if (ImGui::InvisibleButton(name, {max.x - min.x, max.y - min.y})) queue.push(command);
  ui.widgets->add(name, min, max);
  const float tip = points_left ? -2.5f : 2.5f;
  const ImVec2 chevron[] = {
      {center.x - tip, center.y - 4.5f}, {center.x + tip, center.y}, {center.x - tip, center.y + 4.5f}};
  const Color color = ImGui::IsItemHovered() ? ui.colors().text : ui.colors().dim;
  ImGui::GetWindowDrawList()->AddPolyline(chevron, 3, to_u32(color), 0, 1.4f);
  const CommandInfo& info = command_of(command);
  tooltip(ui, std::string(command_text(info, context)) + " (" + chord_text(info.chord) + ")");
  ImGui::EndChild();
}

}  // namespace

void App::Impl::draw_panels(ImVec2 min, ImVec2 max) {
  // A narrow window takes from the panels, the right one first.
  const float width = max.x - min.x;
  const float least_right = preferences.inspector_hidden ? 0 : kLeastRight;
  const float left = preferences.setup_hidden ? 0
                                              : std::clamp(preferences.left_width, kLeastLeft,
                                                           std::max(kLeastLeft, width - kLeastStage - least_right));
  const float right = preferences.inspector_hidden ? 0
                                                   : std::clamp(preferences.right_width, kLeastRight,
                                                                std::max(kLeastRight, width - kLeastStage - left));
  if (left > 0) {
    begin_panel(ui, "setup", min, {min.x + left, max.y});
    draw_setup_panel(ui, input(), stage, setup, pictures, queue);
    end_panel();
  }
  draw_stage({min.x + left, min.y}, {max.x - right, max.y});
  if (right > 0) {
    begin_panel(ui, "inspector", {max.x - right, min.y}, max);
    draw_inspector(ui, input(), stage, inspector, heads, queue);
    end_panel();
  }
  const CommandContext now = context();
  const float middle = min.y + kTabBarHeight / 2;
  draw_panel_button(ui, "panel/setup", {min.x + left + 12, middle}, left > 0, CommandId::kSetup, now, queue);
  draw_panel_button(ui, "panel/inspector", {max.x - right - 12, middle}, right == 0, CommandId::kInspector, now, queue);
  draw_splitters(min, max, left, right);
}

void App::Impl::draw_splitters(ImVec2 min, ImVec2 max, float left, float right) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  // `line` is what parts the panels, a pixel beside `x`.
  const auto splitter = [&](const char* name, float x, float line, float& width, float current, float least,
                            float direction) {
    list->AddLine({line, min.y}, {line, max.y}, to_u32(ui.colors().line));
    // A window of its own, over the panels that it parts: they would take the mouse from an item below them.
    ImGui::SetCursorScreenPos({x - 3, min.y});
    ImGui::BeginChild(name, {6, max.y - min.y}, false, ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoNav);
    ImGui::InvisibleButton(name, {6, max.y - min.y});
    widgets.add(name, {x - 3, min.y}, {x + 3, max.y});
    if (ImGui::IsItemHovered() || ImGui::IsItemActive()) {
      ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
      ImGui::GetForegroundDrawList()->AddLine({x, min.y}, {x, max.y}, to_u32(ui.colors().accent), 1);
    }
    if (ImGui::IsItemActive() && ImGui::GetIO().MouseDelta.x != 0)
      width = std::clamp(current + direction * ImGui::GetIO().MouseDelta.x, least, kMostPanel);
    ImGui::EndChild();
  };
  const float x0 = min.x + left, x1 = max.x - right;
  if (left > 0) splitter("splitter/left", x0, x0 - 0.5f, preferences.left_width, left, kLeastLeft, 1);
  if (right > 0) splitter("splitter/right", x1, x1 + 0.5f, preferences.right_width, right, kLeastRight, -1);
}

}  // namespace qkv
