// What the tabs of the stage share: the cell in focus, the axes' scroll and zoom, and how matrices are linked.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/engine/engine.h"
#include "app/engine/lens.h"
#include "app/panels/source_picture.h"
#include "app/ui/action_queue.h"
#include "app/ui/controls.h"
#include "app/ui/ui.h"

namespace qkv {

struct CellRef {
  MatrixId id;
  Index row = 0, col = 0;  // as stored, whatever the orientation on screen
  bool operator==(const CellRef&) const = default;
};

// A block that was chosen with the mouse or the arrows. `focus` moves, `anchor` stays.
struct Selection {
  MatrixId id;
  Index anchor_row = 0, anchor_col = 0, row = 0, col = 0;
  bool transposed = false;  // chosen where the matrix is drawn transposed: arrows and the clipboard follow the eye
  Rect rect() const;
  CellRef cell() const { return {id, row, col}; }
};

// Scroll and zoom of one axis, shared by every matrix that has it, so that rows and columns stay aligned.
struct AxisView {
  double zoom = 1;   // 1 = all entries fit
  double first = 0;  // first visible entry, may be fractional

  double visible(double count) const { return count / zoom; }
  void clamp(double count);
  void zoom_about(double count, double at, double factor);  // entry `at` stays where it is
};

struct CellEdit {
  bool open = false;  // a number is being typed into the selected cell
  TextFieldState field;
  float before = 0;      // value to go back to on Escape
  bool applied = false;  // something typed has changed the cell
  ImVec2 min, max;       // of the field
  std::uint64_t gesture = 0;
};

struct Scrub {
  bool active = false;
  CellRef cell;
  float start = 0;
  float travelled = 0;  // pixels
  std::uint64_t gesture = 0;
};

struct StageState {
  std::optional<CellRef> hover;       // of this frame
  std::optional<CellRef> last_hover;  // of the frame before: what highlights and the inspector use
  std::optional<Selection> selection;
  CellEdit edit;
  Scrub scrub;
  bool selection_drawn = false;  // in the last frame: keys change only what is seen
  bool draws_selection = false;  // in this one
  bool keyboard_leads = false;   // the arrows moved last: the chosen cell is explained, not the one under the pointer
  bool selecting = false;        // dragging a block with Shift
  bool open_menu = false;        // the context menu is due
  std::map<Axis, AxisView> axes;
  std::optional<MatrixKind> enlarged;     // One head shows this matrix alone
  std::optional<MatrixId> pointed;        // matrix under the pointer, for zoom and export
  std::optional<MatrixCell> lens_target;  // what gradients are of; none = the sum of squares
};

// The cell that the inspector explains: under the pointer, else the chosen one.
std::optional<CellRef> focus_cell(const StageState& state);

// Numbers that are not there: they are being computed, could not be, or somebody stopped their computation.
enum class Missing { kComing, kFailed, kStopped };

// What a frame of the stage reads.
struct StageInput {
  const Session& session;            // newest
  const Computed& computed;          // newest finished; its shapes may differ from the session's while the engine works
  std::uint64_t version;             // changes with session, computed or lens
  const LensResult* lens = nullptr;  // what the cells show in place of values; null = values
  SourcePictures* pictures = nullptr;      // of a streamed trace
  TokenStyle tokens = TokenStyle::kPlain;  // how they are shown
  Missing missing = Missing::kComing;      // what `computed` has not of the newest session
};

// What stands on an axis of the computed session, tokens as they are shown.
inline AxisNames shown_names(const StageInput& in, Axis axis, Index count) {
  return {in.computed.session, axis, count, in.tokens};
}

// The cells to show of a matrix, held or not. Refers to what StageInput does.
struct ShownCells {
  Index rows = 0, cols = 0;
  const Matrix* held = nullptr;
  std::shared_ptr<const MatrixSource> source;  // where it is not held
  explicit operator bool() const { return held != nullptr || source != nullptr; }
  float at(Index row, Index col) const;
  Matrix block(const Rect& rect) const;
};
ShownCells shown_cells(const StageInput& in, MatrixId id);

// The numbers to show where they are held: the newest input where its shape is that of the trace, else what the trace
// was made of.
const Matrix* shown_matrix(const StageInput& in, MatrixId id);
// A person may edit it: an input of the session.
bool is_editable(const StageInput& in, MatrixId id);
const FiniteExtent& shown_extent(const StageInput& in, MatrixId id);  // of all that share its colour scale
ColorRange shown_range(const StageInput& in, MatrixId id);
const std::string& shown_colormap(const StageInput& in, MatrixId id);

// The cells that a cell is made of, to light up: row and column of the factors, row of the softmax, band of a head.
struct Highlight {
  MatrixId id;
  Rect rect;
};
std::vector<Highlight> linked_cells(const Trace& trace, const CellRef& cell);

// The query and key tokens that a cell belongs to; −1 = none.
struct TokenLink {
  Index query = -1, key = -1;
};
TokenLink linked_tokens(const CellRef& cell);

}  // namespace qkv
