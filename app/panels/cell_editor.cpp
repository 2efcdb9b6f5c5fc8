#include "app/panels/cell_editor.h"

#include <algorithm>
#include <cmath>

#include "app/panels/lens.h"
#include "app/ui/keys.h"
#include "core/base/number_text.h"
#include "core/tensor_io/table.h"

namespace qkv {
namespace {

const std::string kCellField = "cell-field";

std::string number_text(float value) { return format_shortest(value); }

void choose(StageState& state, const CellRef& cell, bool transposed, bool extend) {
  const bool same = state.selection && state.selection->id == cell.id;
  if (extend && same) {
    state.selection->row = cell.row;
    state.selection->col = cell.col;
  } else {
    state.selection = Selection{cell.id, cell.row, cell.col, cell.row, cell.col, transposed};
  }
}

void open_edit(Ui& ui, const StageInput& in, StageState& state, std::string text, bool select, ActionQueue& queue) {
  leave_lens(in, queue);
  const CellRef cell = state.selection->cell();
  state.edit.open = true;
  state.edit.applied = false;
  state.edit.before = (*shown_matrix(in, cell.id))(cell.row, cell.col);
  state.edit.gesture = queue.new_gesture();
  state.edit.field = {};
  state.edit.field.edit.set(std::move(text));
  if (select) state.edit.field.edit.select_all();
  focus_text_field(ui, kCellField, state.edit.field);
}

void apply_typed(StageState& state, ActionQueue& queue) {
  const CellRef cell = state.selection->cell();
  const auto value = parse_float(state.edit.field.edit.text);
  if (!value) return;
  queue.push(SetCell{cell.id, cell.row, cell.col, *value}, state.edit.gesture);
  state.edit.applied = true;
}

// `down` and `right` as drawn.
void move(const StageInput& in, Selection& selection, Index down, Index right, bool extend) {
  const ShownCells values = shown_cells(in, selection.id);
  if (selection.transposed) std::swap(down, right);
  selection.row = std::clamp<Index>(selection.row + down, 0, values.rows - 1);
  selection.col = std::clamp<Index>(selection.col + right, 0, values.cols - 1);
  if (!extend) {
    selection.anchor_row = selection.row;
    selection.anchor_col = selection.col;
  }
}

// Tab walks along a row and on to the next.
void tab(const StageInput& in, Selection& selection, int direction) {
  const ShownCells values = shown_cells(in, selection.id);
  const Index along = selection.transposed ? values.rows : values.cols;
  Index& a = selection.transposed ? selection.row : selection.col;
  const Index a_before = a;
  move(in, selection, 0, direction, false);
  if (a == a_before) {
    Index& b = selection.transposed ? selection.col : selection.row;
    const Index b_before = b;
    move(in, selection, direction, 0, false);
    if (b != b_before) a = direction > 0 ? 0 : along - 1;
    selection.anchor_row = selection.row;
    selection.anchor_col = selection.col;
  }
}

// One step of scrubbing: a tenth of the value's size, a hundredth with Ctrl.
double scrub_step(float start, bool fine) {
  const double size = std::max(1.0, std::abs(static_cast<double>(start)));
  const double unit = std::pow(10.0, std::floor(std::log10(size)) - 1);
  return fine ? unit / 10 : unit;
}

void scrub(const StageInput& in, StageState& state, ActionQueue& queue) {
  constexpr float kPixelsPerStep = 6;
  const ImGuiIO& io = ImGui::GetIO();
  Scrub& s = state.scrub;
  s.travelled += io.MouseDelta.x - io.MouseDelta.y;
  const double step = scrub_step(s.start, io.KeyCtrl);
  const double steps = std::trunc(s.travelled / kPixelsPerStep);
  const auto value = static_cast<float>(std::round((s.start + steps * step) / step) * step);
  const float now = (*shown_matrix(in, s.cell.id))(s.cell.row, s.cell.col);
  if (steps != 0 && value != now) queue.push(SetCell{s.cell.id, s.cell.row, s.cell.col, value}, s.gesture);
}

void begin_scrub(const StageInput& in, StageState& state, const CellRef& cell, ActionQueue& queue) {
  const float start = (*shown_matrix(in, cell.id))(cell.row, cell.col);
  state.scrub = {true, cell, std::isfinite(start) ? start : 0, 0, queue.new_gesture()};
}

// The chosen block as drawn.
Matrix drawn_block(const StageInput& in, const Selection& selection) {
  const Rect rect = selection.rect();
  Matrix block = displayed_cells(in, selection.id).block(rect);
  if (selection.transposed) block = Matrix(block.transpose());
  return block;
}

}  // namespace

void handle_cell_mouse(Ui& ui, const StageInput& in, StageState& state, MatrixId id, bool transposed,
                       const std::optional<CellRef>& under, ActionQueue& queue) {
  const ImGuiIO& io = ImGui::GetIO();
  if (state.edit.open && ImGui::IsMouseHoveringRect(state.edit.min, state.edit.max, false)) return;
  const bool editable = is_editable(in, id);
  const bool hovered = ImGui::IsItemHovered();
  if (hovered && editable && !io.KeyShift) ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
  if (hovered && under && (ImGui::IsMouseClicked(0) || ImGui::IsMouseClicked(1))) {
    const bool on_selection =
        state.selection && state.selection->id == id && state.selection->rect().contains(under->row, under->col);
    if (!(ImGui::IsMouseClicked(1) && on_selection)) choose(state, *under, transposed, io.KeyShift);
    state.edit.open = false;
    state.selecting = io.KeyShift && ImGui::IsMouseClicked(0);
    if (ImGui::IsMouseDoubleClicked(0) && editable)
      open_edit(ui, in, state, number_text((*shown_matrix(in, id))(under->row, under->col)), true, queue);
    if (ImGui::IsMouseClicked(1)) state.open_menu = true;
  }
  if (!ImGui::IsItemActive() || !state.selection || state.selection->id != id) return;
  if (state.selecting && under) {
    choose(state, *under, transposed, true);
  } else if (editable && ImGui::IsMouseDown(0) && ImGui::IsMouseDragging(0, 3) && !state.edit.open) {
    if (!state.scrub.active) begin_scrub(in, state, state.selection->cell(), queue);
    scrub(in, state, queue);
  }
}

void handle_cell_keys(Ui& ui, const StageInput& in, StageState& state, ActionQueue& queue) {
  const ImGuiIO& io = ImGui::GetIO();
  if (!ImGui::IsMouseDown(0)) state.scrub.active = state.selecting = false;
  if (io.MouseDelta.x != 0 || io.MouseDelta.y != 0) state.keyboard_leads = false;
  if (!state.selection) return;
  Selection& selection = *state.selection;
  const ShownCells values = shown_cells(in, selection.id);
  if (selection.rect().row + selection.rect().rows > values.rows ||
      selection.rect().col + selection.rect().cols > values.cols) {
    state.selection.reset();
    state.edit.open = false;
    if (ui.focus == kCellField) ui.focus.clear();
    return;
  }
  if (!ui.keyboard_is_free() || io.KeyCtrl || io.KeyAlt) return;
  if (ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopup)) return;
  const bool editable = is_editable(in, selection.id);
  const std::pair<Key, std::pair<Index, Index>> arrows[] = {
      {Key::kUp, {-1, 0}}, {Key::kDown, {1, 0}}, {Key::kLeft, {0, -1}}, {Key::kRight, {0, 1}}};
  for (const auto& [key, step] : arrows)
    if (key_pressed(key)) {
      move(in, selection, step.first, step.second, io.KeyShift);
      state.keyboard_leads = true;
    }
  if (key_pressed(Key::kTab)) {
    tab(in, selection, io.KeyShift ? -1 : 1);
    state.keyboard_leads = true;
  }
  if (take_escape(ui)) {
    state.selection.reset();
    return;
  }
  if (!editable || !state.selection_drawn) return;
  const CellRef cell = selection.cell();
  if (key_pressed(Key::kDelete) || key_pressed(Key::kBackspace)) {
    leave_lens(in, queue);
    queue.push(FillBlock{cell.id, selection.rect(), Fill::kValue, 0, 1});
  }
  if (enter_pressed() || key_pressed(Key::kF2, false)) {
    open_edit(ui, in, state, number_text(values.at(cell.row, cell.col)), true, queue);
  } else if (!ui.typed.empty() && std::string_view("0123456789+-.−ni").find(ui.typed[0]) != std::string_view::npos) {
    open_edit(ui, in, state, "", false, queue);
  }
}

void draw_cell_field(Ui& ui, const StageInput& in, StageState& state, ImVec2 min, ImVec2 max, ActionQueue& queue) {
  const float width = std::max(72.0f, label_width(ui, state.edit.field.edit.text, 13) + 28);
  const float height = 26;
  const float x = (min.x + max.x) / 2, y = (min.y + max.y) / 2;
  const ImVec2 lo{x - width / 2, y - height / 2}, hi{x + width / 2, y + height / 2};
  ImGui::GetWindowDrawList()->AddRectFilled({lo.x - 3, lo.y - 3}, {hi.x + 3, hi.y + 3},
                                            to_u32(with_alpha(ui.colors().accent, 0.2)), 8);
  state.edit.min = lo;
  state.edit.max = hi;
  TextFieldLook look;
  look.align = TextAlign::kCenter;
  look.text_size = 13;
  const TextFieldResult result = text_field(ui, kCellField, lo, hi, state.edit.field, look);
  const CellRef cell = state.selection->cell();
  if (result.cancelled && state.edit.applied) {
    queue.push(SetCell{cell.id, cell.row, cell.col, state.edit.before}, state.edit.gesture);
  } else if (!result.cancelled && result.changed) {
    apply_typed(state, queue);
  }
  if (!result.left && ui.focus == kCellField) return;
  state.edit.open = false;
  const std::string& text = state.edit.field.edit.text;
  const bool refused = !result.cancelled && !text.empty() && !parse_float(text);
  if (refused && state.edit.applied)  // what the start of the text stood for goes too
    queue.push(SetCell{cell.id, cell.row, cell.col, state.edit.before}, state.edit.gesture);
  if (refused) queue.messages.push_back("“" + text + "” is not a number: the cell keeps the one it had");
  if (result.entered || result.tab != 0) state.keyboard_leads = true;
  if (result.entered) move(in, *state.selection, 1, 0, false);
  if (result.tab != 0) tab(in, *state.selection, result.tab);
}

void copy_selection(const StageInput& in, const StageState& state, ActionQueue& queue) {
  if (!state.selection || !shown_cells(in, state.selection->id)) {
    queue.messages.push_back("Nothing to copy: choose cells first");
    return;
  }
  // As text they take about ten bytes each.
  constexpr Index kMostCopied = 4'000'000;
  const Rect rect = state.selection->rect();
  if (rect.rows * rect.cols > kMostCopied) {
    queue.messages.push_back("Too many numbers to copy as text: " + std::to_string(rect.rows) + " × " +
                             std::to_string(rect.cols) + ". Choose at most 4,000,000");
    return;
  }
  const Matrix block = drawn_block(in, *state.selection);
  ImGui::SetClipboardText(to_tsv(block).c_str());
  queue.messages.push_back("Copied " + std::to_string(block.rows()) + " × " + std::to_string(block.cols()) +
                           " numbers as tab-separated text");
}

void paste_selection(const StageInput& in, const StageState& state, ActionQueue& queue) {
  if (!state.selection || !is_editable(in, state.selection->id)) {
    queue.messages.push_back("Nowhere to paste: choose a cell of a matrix that can be edited first");
    return;
  }
  const char* text = ImGui::GetClipboardText();
  Result<Matrix> pasted = from_tsv(text == nullptr ? "" : text);
  if (!pasted) {
    queue.messages.push_back(pasted.error().message);
    return;
  }
  const Selection& selection = *state.selection;
  const Rect rect = selection.rect();
  Matrix block = std::move(pasted).value();
  if (block.size() == 1)
    block = Matrix::Constant(rect.rows, rect.cols, block(0, 0));
  else if (selection.transposed)
    block = Matrix(block.transpose());
  leave_lens(in, queue);
  queue.push(SetBlock{selection.id, rect.row, rect.col, std::move(block)});
}

std::string to_tsv(ConstMatrixRef values) {
  std::string text;
  for (Index r = 0; r < values.rows(); ++r) {
    for (Index c = 0; c < values.cols(); ++c) {
      if (c > 0) text += '\t';
      text += format_shortest(values(r, c));
    }
    if (r + 1 < values.rows()) text += '\n';
  }
  return text;
}

Result<Matrix> from_tsv(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return bad_input("The clipboard holds no numbers to paste");
  }
  const auto cannot_paste = [](const Error& error) { return bad_input("Can't paste: " + error.message); };
  const Result<Table> parsed = parse_table(text);
  if (!parsed.ok()) return cannot_paste(parsed.error());
  const Table& table = parsed.value();
  const Result<std::vector<float>> values = float32_values(table, 0, table.values.size());
  if (!values.ok()) return cannot_paste(values.error());
  return Matrix(Eigen::Map<const Matrix>(values.value().data(), static_cast<Index>(table.rows),
                                         static_cast<Index>(table.columns)));
}

}  // namespace qkv
