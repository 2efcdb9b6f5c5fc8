#include "app/panels/message_dialogs.h"

#include "app/panels/modal.h"
#include "app/ui/keys.h"

namespace qkv {

void ask(QuestionState& state, std::string title, std::string text, std::string yes, std::string other) {
  state = {true, true, std::move(title), std::move(text), std::move(yes), std::move(other)};
}

Answer draw_question(Ui& ui, QuestionState& state) {
  // The key that led here is still down: it answers nothing.
  const bool fresh = state.just_opened;
  if (!begin_modal(ui, "question", state.title, {460, 190}, state.open, state.just_opened)) return Answer::kNone;
  const float width = ImGui::GetContentRegionAvail().x;
  draw_label_paragraph(ui, ImGui::GetWindowDrawList(), ImGui::GetCursorScreenPos(), width, state.text, 13,
                       ui.colors().dim);
  const int button = modal_buttons(ui, "question", state.yes, state.other);
  Answer answer = Answer::kNone;
  if (button == 1 || (!fresh && enter_pressed())) answer = Answer::kYes;
  if (button == 3) answer = Answer::kOther;
  if (button == 2 || (!fresh && take_escape(ui))) answer = Answer::kCancel;
  if (answer != Answer::kNone) state.open = false;
  end_modal(state.open);
  return answer;
}

void draw_shortcuts(Ui& ui, InfoState& state) {
  if (!begin_modal(ui, "shortcuts", "Mouse and keys", {560, 575}, state.open, state.just_opened)) return;
  static constexpr const char* kRows[][2] = {
      {"rest on a cell", "its row and column light up; its sum is written out"},
      {"click a cell", "choose it; it stays in the inspector"},
      {"drag a cell of Q, K, V, X, W", "change its number; Ctrl for small steps"},
      {"type, F2, Enter, double click", "write a number; Enter goes down, Tab goes right"},
      {"arrows, Tab", "move to another cell"},
      {"Shift + drag, Shift + arrows", "choose a block"},
      {"right button", "fill, copy, paste, export"},
      {"Ctrl+C, Ctrl+V", "copy and paste with a spreadsheet"},
      {"Delete", "zeros"},
      {"wheel", "zoom rows and columns together"},
      {"Shift + wheel, middle drag", "move along a zoomed matrix"},
      {"Ctrl+0", "fit everything again"},
      {"Ctrl+M, Escape", "one matrix over the whole stage, and back"},
      {"Ctrl+B, Ctrl+Shift+B", "hide or show the setup, the inspector"},
      {"Page Up, Page Down", "previous and next head"},
      {"Ctrl+Z, Ctrl+Shift+Z", "undo and redo"},
  };
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (const auto& row : kRows) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    draw_text_in(ui, list, FontRole::kText13, at, {at.x + 210, at.y + 27}, ui.colors().text, row[0], TextAlign::kLeft);
    draw_text_in(ui, list, FontRole::kText13, {at.x + 216, at.y}, {at.x + 520, at.y + 27}, ui.colors().dim, row[1],
                 TextAlign::kLeft);
    ImGui::Dummy({520, 27});
  }
  if (modal_buttons(ui, "shortcuts", "Close", {}, {}) == 1 || take_escape(ui) || enter_pressed()) state.open = false;
  end_modal(state.open);
}

void draw_about(Ui& ui, InfoState& state) {
  if (!begin_modal(ui, "about", "qkvlab " QKV_VERSION, {420, 200}, state.open, state.just_opened)) return;
  const float width = ImGui::GetContentRegionAvail().x;
  draw_paragraph(ui, ImGui::GetWindowDrawList(), FontRole::kText13, ImGui::GetCursorScreenPos(), width, ui.colors().dim,
                 "A laboratory for attention: edit Q, K and V and see every number follow, from the scores to "
                 "Concat(head₁ … headₕ)·Wᴼ. Values are computed in float64 and shown as float32. MIT licence.");
  if (modal_buttons(ui, "about", "Close", {}, {}) == 1 || take_escape(ui) || enter_pressed()) state.open = false;
  end_modal(state.open);
}

}  // namespace qkv
