// Editing the cells of a matrix in place: choosing, typing, scrubbing, filling, the clipboard.
#pragma once

#include <optional>
#include <string>

#include "app/panels/stage.h"

namespace qkv {

// Mouse over a matrix, right after its ImGui item: click chooses, a second click or F2 opens the number, a plain
// drag over an editable matrix scrubs the value, Shift+drag chooses a block, the right button opens the menu.
void handle_cell_mouse(Ui& ui, const StageInput& in, StageState& state, MatrixId id, bool transposed,
                       const std::optional<CellRef>& under, ActionQueue& queue);

// Keys while a cell is chosen and no text field has the keyboard: arrows, Tab, Enter, typing, Delete, Escape.
void handle_cell_keys(Ui& ui, const StageInput& in, StageState& state, ActionQueue& queue);

// The number being typed, over its cell; every valid text is applied at once, as one undo step.
void draw_cell_field(Ui& ui, const StageInput& in, StageState& state, ImVec2 min, ImVec2 max, ActionQueue& queue);

// The context menu of the chosen cells, opened by StageState::open_menu. Drawn by the stage's own window: a popup
// belongs to the window that opens it, and matrices may stand in scrolling ones.
struct FillForm {
  NumberEntry entry;
  float value = 0;
  double seed = 1;
};
void draw_cell_menu(Ui& ui, const StageInput& in, StageState& state, FillForm& form, ActionQueue& queue);

void copy_selection(const StageInput& in, const StageState& state, ActionQueue& queue);
void paste_selection(const StageInput& in, const StageState& state, ActionQueue& queue);

// Tab-separated rows ("1\t2\n3\t4"), as spreadsheets exchange them; and back from any table that parse_table reads,
// without the names of its rows and columns. Errors name the line and column.
std::string to_tsv(ConstMatrixRef values);
Result<Matrix> from_tsv(std::string_view text);

}  // namespace qkv
