// The lens of the stage: what its cells show in place of their values, how that is named, and where it is chosen.
#pragma once

#include <string>
#include <vector>

#include "app/panels/stage.h"

namespace qkv {

// The numbers that the cells show: of the lens where there is one that has this matrix, else its values.
ShownCells displayed_cells(const StageInput& in, MatrixId id);
// The lens shows this matrix; in.lens is not null.
bool has_lens(const StageInput& in, MatrixId id);

// The cell whose gradient is shown: the chosen one of A, O, Concat or Out, until no cell is chosen any more.
void follow_target(const Trace& trace, StageState& state);

// "∂L/∂Q", "ΔQ bf16", with "· 10⁻³" where the numbers in its cells are written in that unit, shortened to what `room`
// pixels hold ("∂Q", "ΔQ"); `title` where there is no lens.
struct TitleRoom {
  float width = 0;
  bool numbers = true;  // the cells are wide enough for some
};
std::string lens_title(const Ui& ui, const StageInput& in, MatrixId id, bool transposed, const std::string& title,
                       const TitleRoom& room);
// What deserves a word beside it: "up to 0.147", "0.5 ulp · 3 ∞"; `subtitle` where there is no lens.
std::string lens_subtitle(const StageInput& in, MatrixId id, const std::string& subtitle);
// "∂L by Q, K, V, O", "Δ of scores · 10⁻³" for the colour bar of several; `name` where there is no lens.
std::string lens_bar_name(const StageInput& in, MatrixId id, const std::string& name);
// What the ends of that bar are multiplied by before they are written.
float lens_bar_factor(const StageInput& in, MatrixId id);
// What the number in a cell is multiplied by before it is written.
float lens_factor(const StageInput& in, MatrixId id);

// "∂ Σ O² / ∂ ·", "bfloat16 − float64"; empty without a lens.
std::string lens_line(const StageInput& in);

// What the inspector says of a cell through the lens: names and numbers at full precision.
struct LensWord {
  std::string name, value;
};
std::vector<LensWord> lens_words(const StageInput& in, const CellRef& cell);

// Values | Gradient | Precision, and the format at its left; ends at `right`, `height` 30. Returns its left end.
float draw_lens_choice(Ui& ui, const StageInput& in, float right, float top, ActionQueue& queue);
inline constexpr float kLensRoom = 346;  // that it takes at most

// Editing acts on values: where a lens is on, back to them.
void leave_lens(const StageInput& in, ActionQueue& queue);

// The value of the cell that is dragged, over it: its cell shows another number.
void draw_dragged_value(Ui& ui, const StageInput& in, const StageState& state, ImVec2 min, ImVec2 max);

}  // namespace qkv
