// The one heat map of the window: any matrix, with numbers, labels, highlights, pan, zoom, selection and editing.
#pragma once

#include <string>
#include <vector>

#include "app/panels/stage.h"

namespace qkv {

// Numbers that are not the trace's, shown in its place: with their own colours, and nothing masked.
struct ForeignMatrix {
  const Matrix* values = nullptr;  // lives until the frame is rendered
  std::string colormap;
  ColorRange range;
  std::uint64_t key = 0;      // which: below 2^32, another for each on the stage
  std::uint64_t version = 0;  // changes with the numbers
  std::string name;           // "theirs": registered as "matrix/theirs"
  float factor = 1;           // what its numbers are multiplied by before they are written
};

// Where a matrix stands on the stage. "Drawn" rows and columns are those on screen.
struct MatrixPlace {
  MatrixId id;
  bool transposed = false;
  Rect part;                   // of the stored matrix; rows = 0 stands for all of it
  Axis rows = Axis::kQueries;  // drawn axes: which AxisView scrolls them
  Axis cols = Axis::kKeys;
  ImVec2 min, size;             // of the cells, logical pixels
  std::string title, subtitle;  // above the cells; empty = none
  bool row_labels = false, col_labels = false;
  float label_room = 120;  // for row labels, left of the cells
  float top_room = 20;     // for column labels, above the cells
  float bar_room = 0;      // between title and labels
  bool numbers = true;
  bool unit_is_written = false;            // of a lens, by the caller; else it stands in the title
  const ForeignMatrix* foreign = nullptr;  // instead of the trace's numbers
  bool interactive = true;                 // takes hover, selection and edits; false: only hover and click
};

// `min` and `size` are rounded down to whole pixels.
MatrixPlace place_at(MatrixId id, Axis rows, Axis cols, ImVec2 min, ImVec2 size, std::string title,
                     std::string subtitle);
// "3 × 4"
std::string shape_words(Index rows, Index cols);

// Draws the matrix and handles the mouse over it. Edits go to `queue`; hover and selection to `state`.
// Returns true when the matrix was clicked without dragging.
bool draw_matrix(Ui& ui, const StageInput& in, StageState& state, const MatrixPlace& place, ActionQueue& queue);

// "matrix/q/1": the registered name. Heads count from 1, as on screen.
std::string matrix_name(MatrixId id);

// Room that row labels of these tokens need, at most `limit`.
float row_label_room(Ui& ui, const AxisNames& labels, float limit = 120);
// Room above the cells for column labels: one line, or upright text when a cell is narrower than its label.
float col_label_room(Ui& ui, const AxisNames& labels, float cell, float limit = 96);

}  // namespace qkv
