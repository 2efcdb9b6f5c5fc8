#include "app/panels/cell_editor.h"
#include "app/panels/lens.h"
#include "app/ui/keys.h"

namespace qkv {
namespace {

bool menu_row(Ui& ui, const std::string& name, std::string_view text, std::string_view shortcut, bool enabled = true) {
  constexpr float kWidth = 232, kHeight = 28;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const bool clicked = ImGui::InvisibleButton(name.c_str(), {kWidth, kHeight});
  ui.widgets->add(name, at, {at.x + kWidth, at.y + kHeight});
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (ImGui::IsItemHovered() && enabled)
    list->AddRectFilled(at, {at.x + kWidth, at.y + kHeight}, to_u32(ui.colors().accent_soft), 5);
  const Color ink = enabled ? ui.colors().text : ui.colors().faint;
  draw_text_in(ui, list, FontRole::kText13, {at.x + 8, at.y}, {at.x + kWidth, at.y + kHeight}, ink, text,
               TextAlign::kLeft);
  draw_text_in(ui, list, FontRole::kSmall11, at, {at.x + kWidth - 8, at.y + kHeight}, ui.colors().dim, shortcut,
               TextAlign::kRight);
  ImGui::SetCursorScreenPos({at.x, at.y + kHeight});
  return clicked && enabled;
}

void menu_line(const Ui& ui) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::GetWindowDrawList()->AddLine({at.x, at.y + 4}, {at.x + 232, at.y + 4}, to_u32(ui.colors().line));
  ImGui::Dummy({232, 9});
}

// A row with a number at its right: the number is edited, the row is clicked.
bool number_row(Ui& ui, const std::string& name, std::string_view text, double value, const NumberRange& range,
                NumberEntry& entry, double& out) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const Box box{{at.x + 152, at.y + 1}, {at.x + 224, at.y + 27}};
  ImGui::SetItemAllowOverlap();
  if (const auto changed = number_field(ui, name + "/number", box, value, range, entry)) out = *changed;
  ImGui::SetCursorScreenPos(at);
  const bool clicked = ImGui::InvisibleButton(name.c_str(), {144, 28});
  ui.widgets->add(name, at, {at.x + 144, at.y + 28});
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (ImGui::IsItemHovered()) list->AddRectFilled(at, {at.x + 146, at.y + 28}, to_u32(ui.colors().accent_soft), 5);
  draw_text_in(ui, list, FontRole::kText13, {at.x + 8, at.y}, {at.x + 144, at.y + 28}, ui.colors().text, text,
               TextAlign::kLeft);
  ImGui::SetCursorScreenPos(at);
  ImGui::Dummy({232, 28});
  return clicked;
}

}  // namespace

void draw_cell_menu(Ui& ui, const StageInput& in, StageState& state, FillForm& form, ActionQueue& queue) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {6, 6});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  if (state.open_menu) ImGui::OpenPopup("cell-menu");
  state.open_menu = false;
  if (ImGui::BeginPopup("cell-menu")) {
    if (ui.keyboard_is_free() && take_escape(ui)) ImGui::CloseCurrentPopup();
    if (!state.selection) {
      ImGui::CloseCurrentPopup();
    } else {
      const MatrixId id = state.selection->id;
      const Rect rect = state.selection->rect();
      const bool editable = is_editable(in, id);
      bool done = false;
      const auto fill = [&](Fill how, float value, std::uint64_t seed) {
        leave_lens(in, queue);
        queue.push(FillBlock{id, rect, how, value, seed});
        done = true;
      };
      if (menu_row(ui, "cell-menu/copy", "Copy", "Ctrl+C")) queue.push(CommandId::kCopy), done = true;
      if (menu_row(ui, "cell-menu/copy-matrix", "Copy matrix", "Ctrl+Shift+C"))
        queue.push(CommandId::kCopyMatrix), done = true;
      if (menu_row(ui, "cell-menu/paste", "Paste", "Ctrl+V", editable)) queue.push(CommandId::kPaste), done = true;
      if (menu_row(ui, "cell-menu/all", "Choose the whole matrix", "Ctrl+A"))
        queue.push(CommandId::kSelectAll), done = true;
      if (editable) {
        menu_line(ui);
        double value = form.value;
        if (number_row(ui, "cell-menu/value", "Fill with a value", value, {-1e30, 1e30, 0.1, false}, form.entry, value))
          fill(Fill::kValue, static_cast<float>(value), 1);
        form.value = static_cast<float>(value);
        if (menu_row(ui, "cell-menu/zeros", "Fill with zeros", "Del")) fill(Fill::kValue, 0, 1);
        if (menu_row(ui, "cell-menu/identity", "Fill with the identity", "")) fill(Fill::kIdentity, 0, 1);
        if (number_row(ui, "cell-menu/random", "Fill at random, seed", form.seed, {0, 1e6, 1, true}, form.entry,
                       form.seed))
          fill(Fill::kRandom, 0, static_cast<std::uint64_t>(form.seed));
      }
      menu_line(ui);
      if (in.session.view.tab == Tab::kHead && !is_weights_only(in.session.problem.source) &&
          menu_row(ui, "cell-menu/enlarge", state.enlarged ? "Show all matrices" : "Enlarge this matrix", "Ctrl+M"))
        queue.push(CommandId::kEnlarge), done = true;
      if (menu_row(ui, "cell-menu/save", "Save this matrix as…", "")) queue.push(CommandId::kSaveMatrix), done = true;
      if (menu_row(ui, "cell-menu/export", "Export this matrix…", "")) queue.push(CommandId::kExport), done = true;
      if (done) ImGui::CloseCurrentPopup();
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar(2);
}

}  // namespace qkv
