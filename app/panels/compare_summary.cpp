#include "app/panels/compare_summary.h"

#include "core/session/compare_words.h"

namespace qkv {
namespace {

constexpr float kLine = 24, kLabel = 108;

// One cell that can be chosen, its numbers below its place where there is no room beside it. True when clicked; moves
// `at` down.
bool cell_line(Ui& ui, const std::string& name, const char* label, const std::string& where, const CellDifference& cell,
               ImVec2& at, float width) {
  const std::string numbers = both_words(cell);
  const float left = at.x + kLabel, right = at.x + width - 8;
  const bool beside = left + label_width(ui, where, 13) + 24 + text_width(ui, FontRole::kText13, numbers) <= right;
  const float height = beside ? kLine : 2 * kLine - 4;
  ImGui::SetCursorScreenPos(at);
  const bool clicked = ImGui::InvisibleButton(name.c_str(), {width, height});
  const bool hovered = ImGui::IsItemHovered();
  ui.widgets->add(name, at, {at.x + width, at.y + height});
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (hovered) {
    list->AddRectFilled({at.x - 8, at.y}, {at.x + width, at.y + height}, to_u32(ui.colors().accent_soft), 5);
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  }
  const float bottom = at.y + kLine, last = at.y + height;
  draw_text_in(ui, list, FontRole::kText13, at, {left, bottom}, ui.colors().dim, label, TextAlign::kLeft);
  draw_label_in(ui, list, {left, at.y}, {right, bottom}, where, 13, ui.colors().accent, TextAlign::kLeft);
  draw_text_in(ui, list, FontRole::kText13, {left, last - kLine}, {right, last}, ui.colors().text, numbers,
               beside ? TextAlign::kRight : TextAlign::kLeft);
  at.y += height;
  return clicked;
}

}  // namespace

void draw_compare_summary(Ui& ui, const CompareResult& result, TokenStyle tokens, std::size_t array, StageState& state,
                          CompareState& compare, ImVec2 at, float width) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Difference& difference = result.comparison.differences[array];
  const ComparedArray& compared = result.comparison.arrays[array];
  at.y +=
      draw_label_paragraph(ui, list, at, width, matrix_words(compared, difference) + ": " + verdict_words(difference),
                           13, ui.colors().text) +
      6;
  const auto line = [&](const char* name, const char* label, const std::optional<CellDifference>& cell) {
    if (!cell) return;
    const MatrixCell& target = cell->cell;
    if (cell_line(ui, name, label, place_words(result.session, difference, target, tokens), *cell, at, width)) {
      compare.head = target.id.head;
      state.selection = Selection{target.id, target.row, target.col, target.row, target.col, false};
      state.keyboard_leads = true;
    }
  };
  if (!difference.equal()) {
    line("compare/first-wrong", "first wrong", difference.first_wrong);
    line("compare/largest", "largest error", difference.largest);
  }
  at.y += 12;
  if (result.comparison.equal()) {
    draw_text(ui, list, FontRole::kBold14, at, ui.colors().text, "All that was compared is equal.");
    return;
  }
  const DiagnosisWords words = diagnosis_words(result.comparison);
  at.y += draw_paragraph(ui, list, FontRole::kBold14, at, width, ui.colors().text, words.headline) + 6;
  ui.widgets->add("compare/cause", at, {at.x + width, at.y + 1});
  for (const auto& [label, text] : words.lines) {
    draw_text(ui, list, FontRole::kText13, at, ui.colors().dim, label);
    at.y +=
        draw_paragraph(ui, list, FontRole::kText13, {at.x + kLabel, at.y}, width - kLabel, ui.colors().text, text) + 4;
  }
  for (const std::string& setting : result.comparison.settings) {
    draw_text(ui, list, FontRole::kText13, at, ui.colors().dim, "set otherwise");
    at.y +=
        draw_label_paragraph(ui, list, {at.x + kLabel, at.y - 2}, width - kLabel, setting, 13, ui.colors().text) + 4;
  }
  ImGui::SetCursorScreenPos(at);
  ImGui::Dummy({width, 16});
}

}  // namespace qkv
