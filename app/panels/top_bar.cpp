#include <algorithm>
#include <cmath>

#include "app/panels/frame_panels.h"

namespace qkv {
namespace {

void menu_entries(Ui& ui, const std::vector<MenuEntry>& entries, const std::string& prefix, ActionQueue& queue) {
  for (const MenuEntry& entry : entries) {
    // Titles are user text: the row is an empty menu item with a label drawn over it.
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float width = std::max(200.0f, label_width(ui, entry.text, 13) + 12);
    ImGui::PushID(entry.path.c_str());
    if (ImGui::Selectable("##entry", false, 0, {width, 22})) {
      queue.open_files.push_back(entry.path);
      ImGui::CloseCurrentPopup();
    }
    ImGui::PopID();
    ui.widgets->add(prefix + "/" + entry.path.filename().string(), at, {at.x + width, at.y + 22});
    draw_label_in(ui, ImGui::GetWindowDrawList(), {at.x + 2, at.y}, {at.x + width, at.y + 22}, entry.text, 13,
                  ui.colors().text, TextAlign::kLeft);
  }
}

void menu(Ui& ui, const char* name, MenuId id, const TopBarInput& input, ActionQueue& queue) {
  const bool open = ImGui::BeginMenu(name);
  ui.widgets->add_last_item("menu/" + std::string(name));
  if (!open) return;
  if (take_escape(ui)) ImGui::CloseCurrentPopup();
  for (const CommandInfo& command : commands()) {
    if (command.menu != id) continue;
    if (command.line_before) ImGui::Separator();
    std::string text(command_text(command, input.context));
    if (command.id == CommandId::kUndo && !input.undo_label.empty()) text += ": " + input.undo_label;
    if (command.id == CommandId::kRedo && !input.redo_label.empty()) text += ": " + input.redo_label;
    const bool checked = (command.id == CommandId::kThemeLight && input.theme == ThemeName::kLight) ||
                         (command.id == CommandId::kThemeDark && input.theme == ThemeName::kDark) ||
                         (command.id == CommandId::kRawTokens && input.context.raw_tokens);
    if (ImGui::MenuItem(text.c_str(), chord_text(command.chord).c_str(), checked,
                        is_enabled(command.id, input.context)))
      queue.push(command.id);
    ui.widgets->add_last_item("menu-item/" + std::string(command.text));
    if (command.id == CommandId::kOpen) {
      if (ImGui::BeginMenu("Examples", !input.examples->empty())) {
        menu_entries(ui, *input.examples, "example", queue);
        ImGui::EndMenu();
      }
      ui.widgets->add_last_item("menu-item/Examples");
      if (ImGui::BeginMenu("Recent", !input.recent->empty())) {
        menu_entries(ui, *input.recent, "recent", queue);
        ImGui::EndMenu();
      }
      ui.widgets->add_last_item("menu-item/Recent");
    }
  }
  ImGui::EndMenu();
}

}  // namespace

void draw_top_bar(Ui& ui, const TopBarInput& input, ActionQueue& queue) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 min = ImGui::GetWindowPos();
  const float width = ImGui::GetIO().DisplaySize.x;
  list->AddRectFilled(min, {min.x + width, min.y + kTopBarHeight}, to_u32(ui.colors().panel));
  list->AddLine({min.x, min.y + kTopBarHeight - 0.5f}, {min.x + width, min.y + kTopBarHeight - 0.5f},
                to_u32(ui.colors().line));
  draw_text_in(ui, list, FontRole::kBold14, {min.x + 16, min.y}, {min.x + 80, min.y + kTopBarHeight}, ui.colors().text,
               "qkvlab", TextAlign::kLeft);

  ImGui::SetCursorScreenPos({min.x + 72, min.y});
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {10, 12});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {8, 8});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {12, 8});
  ImGui::PushStyleColor(ImGuiCol_MenuBarBg, 0);
  ImGui::BeginChild("menu-bar", {280, kTopBarHeight - 1}, false,
                    ImGuiWindowFlags_MenuBar | ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoBackground);
  if (ImGui::BeginMenuBar()) {
    menu(ui, "File", MenuId::kFile, input, queue);
    menu(ui, "Edit", MenuId::kEdit, input, queue);
    menu(ui, "View", MenuId::kView, input, queue);
    menu(ui, "Help", MenuId::kHelp, input, queue);
    ImGui::EndMenuBar();
  }
  ImGui::EndChild();
  ImGui::PopStyleColor();
  ImGui::PopStyleVar(3);

  const float left = min.x + 360, right = min.x + width - 172;
  const float edited = input.edited ? text_width(ui, FontRole::kText13, " · edited") : 0;
  const float title = std::min(label_width(ui, input.title, 13), right - left - edited);
  const float x = std::max(left, min.x + (width - title - edited) / 2);
  draw_label_in(ui, list, {x, min.y}, {x + title + 1, min.y + kTopBarHeight}, input.title, 13, ui.colors().text,
                TextAlign::kLeft);
  if (input.edited)
    draw_text_in(ui, list, FontRole::kText13, {x + title, min.y}, {right, min.y + kTopBarHeight}, ui.colors().dim,
                 " · edited", TextAlign::kLeft);
  const std::string words = "Commands  " + chord_text(command_of(CommandId::kPalette).chord);
  const Box hint{{min.x + width - 160, min.y + 6}, {min.x + width - 12, min.y + kTopBarHeight - 7}};
  ImGui::SetCursorScreenPos(hint.min);
  if (ImGui::InvisibleButton("palette-hint", {hint.max.x - hint.min.x, hint.max.y - hint.min.y}))
    queue.push(CommandId::kPalette);
  ui.widgets->add("palette-hint", hint.min, hint.max);
  draw_text_in(ui, list, FontRole::kSmall11, hint.min, {hint.max.x - 4, hint.max.y},
               ImGui::IsItemHovered() ? ui.colors().text : ui.colors().dim, words, TextAlign::kRight);
}

}  // namespace qkv
