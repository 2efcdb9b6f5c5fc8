#include "app/panels/matrix_view.h"

#include <algorithm>
#include <cmath>

#include "app/panels/axis_tips.h"
#include "app/panels/cell_editor.h"
#include "app/panels/cell_text.h"
#include "app/panels/lens.h"
#include "app/panels/matrix_heatmap.h"
#include "app/panels/matrix_labels.h"

namespace qkv {
namespace {

constexpr Index kMaxNamedCells = 4096;

bool is_visible(const StageInput& in, const CellRef& cell) {
  const Trace& trace = in.computed.trace;
  if (trace.streams.empty()) return trace.keep(cell.row, cell.col) != 0;
  return mask_reason(trace.problem.options, trace.shapes.nq, trace.shapes.nk, cell.row, cell.col) ==
         MaskReason::kVisible;
}

void draw_numbers(Ui& ui, const StageInput& in, const StageState& state, const MatrixCanvas& canvas) {
  const Rect window = canvas.window();
  if (window.rows <= 0 || window.cols <= 0) return;
  // Numbers of a matrix that is not held come all at once.
  if (canvas.cells.held == nullptr && (canvas.picture == nullptr || !canvas.picture->complete)) return;
  const bool in_units = !canvas.place.title.empty() || canvas.place.unit_is_written;
  const bool foreign = canvas.place.foreign != nullptr;
  const float factor = foreign ? canvas.place.foreign->factor : in_units ? lens_factor(in, canvas.place.id) : 1;
  const auto value = [&](Index r, Index c) {
    const CellRef cell = canvas.cell(r, c);
    return canvas.value(cell) * factor;
  };
  const auto format = fit_cell_text(ui, window, value, canvas.cell_w(), canvas.cell_h(), in.session.view.decimals);
  if (!format) return;
  const ColorRange range = range_at(in, canvas.place);
  const ColorTable& table = ui.table(colormap_at(in, canvas.place));
  const bool masks =
      !foreign && scale_group(canvas.place.id.kind) == ScaleGroup::kWeights && in.computed.digest.hidden > 0;
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (Index r = window.row; r < window.row + window.rows; ++r)
    for (Index c = window.col; c < window.col + window.cols; ++c) {
      const CellRef cell = canvas.cell(r, c);
      if (state.edit.open && state.selection && state.selection->cell() == cell) continue;
      const float number = canvas.value(cell);
      const bool visible = !masks || is_visible(in, cell);
      const Color ink = cell_ink(ui, table, range, number, visible);
      const std::string text = cell_text(number * factor, format->decimals);
      if (text_width(ui, format->role, text) > canvas.cell_w()) continue;
      draw_text_in(ui, list, format->role, {canvas.x_of(double(c)), canvas.y_of(double(r))},
                   {canvas.x_of(double(c + 1)), canvas.y_of(double(r + 1))}, ink, text, TextAlign::kCenter);
    }
}

void draw_marks(Ui& ui, const StageInput& in, const StageState& state, const MatrixCanvas& canvas) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const MatrixPlace& place = canvas.place;
  const ImU32 accent = to_u32(ui.colors().accent);
  ImVec2 lo, hi;
  const auto outline = [&](const Rect& rect, float thickness) {
    if (!canvas.box(rect, lo, hi)) return;
    list->AddRect({lo.x - 0.5f, lo.y - 0.5f}, {hi.x + 0.5f, hi.y + 0.5f}, accent, 2, 0, thickness);
  };
  if (const auto focus = focus_cell(state)) {
    for (const Highlight& link : linked_cells(in.computed.trace, *focus))
      if (link.id == place.id) outline(link.rect, 2);
    const bool chosen = state.selection && state.selection->cell() == *focus;
    if (focus->id == place.id) outline({focus->row, focus->col, 1, 1}, chosen ? 2.0f : 1.0f);
  }
  if (state.selection && state.selection->id == place.id) {
    const Rect rect = state.selection->rect();
    if (canvas.box(rect, lo, hi)) {
      if (rect.rows * rect.cols > 1) list->AddRectFilled(lo, hi, to_u32(with_alpha(ui.colors().accent, 0.18)), 2);
      outline(rect, 2);
    }
  }
}

std::optional<CellRef> cell_under_mouse(const MatrixCanvas& canvas) {
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const auto row = static_cast<Index>(std::floor(canvas.row_at(mouse.y)));
  const auto col = static_cast<Index>(std::floor(canvas.col_at(mouse.x)));
  if (row < 0 || row >= canvas.rows || col < 0 || col >= canvas.cols) return std::nullopt;
  return canvas.cell(row, col);
}

// Queries and keys of one list of tokens zoom together, so that S and A stay in proportion whatever was pointed at.
void zoom_other_side(const StageInput& in, StageState& state, const MatrixCanvas& canvas, double factor) {
  if (in.computed.session.key_tokens) return;
  const Axis rows = canvas.place.rows, cols = canvas.place.cols;
  const auto count = static_cast<double>(in.computed.trace.shapes.nq);
  const auto is_token = [](Axis axis) { return axis == Axis::kQueries || axis == Axis::kKeys; };
  if (is_token(rows) == is_token(cols)) return;
  const Axis mine = is_token(rows) ? rows : cols;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const double at = is_token(rows) ? canvas.row_at(mouse.y) : canvas.col_at(mouse.x);
  state.axes[mine == Axis::kQueries ? Axis::kKeys : Axis::kQueries].zoom_about(count, at, factor);
}

void handle_wheel(const StageInput& in, StageState& state, const MatrixCanvas& canvas) {
  const ImGuiIO& io = ImGui::GetIO();
  if (io.MouseWheelH != 0 || (io.MouseWheel != 0 && io.KeyShift)) {
    const double step = io.MouseWheelH != 0 ? io.MouseWheelH : io.MouseWheel;
    canvas.col_view.first -= step * canvas.col_view.visible(double(canvas.cols)) * 0.1;
    canvas.col_view.clamp(double(canvas.cols));
  } else if (io.MouseWheel != 0) {
    const double factor = std::pow(1.2, io.MouseWheel);
    zoom_other_side(in, state, canvas, factor);
    canvas.col_view.zoom_about(double(canvas.cols), canvas.col_at(io.MousePos.x), factor);
    canvas.row_view.zoom_about(double(canvas.rows), canvas.row_at(io.MousePos.y), factor);
  }
}

void pan_by_mouse(const MatrixCanvas& canvas) {
  const ImVec2 delta = ImGui::GetIO().MouseDelta;
  canvas.col_view.first -= delta.x / canvas.cell_w();
  canvas.row_view.first -= delta.y / canvas.cell_h();
  canvas.col_view.clamp(double(canvas.cols));
  canvas.row_view.clamp(double(canvas.rows));
}

// What the mouse does to the matrix, which is the last item. True when it was clicked without dragging.
bool handle_mouse(Ui& ui, const StageInput& in, StageState& state, const MatrixCanvas& canvas, ActionQueue& queue) {
  const bool hovered = ImGui::IsItemHovered() || (ImGui::IsItemActive() && state.scrub.active);
  const auto under = cell_under_mouse(canvas);
  if (hovered && under) {
    state.hover = under;
    state.pointed = canvas.place.id;
    handle_wheel(in, state, canvas);
  }
  const bool panning =
      ImGui::IsItemActive() &&
      (ImGui::IsMouseDragging(2, 2) ||
       (ImGui::IsMouseDragging(0, 3) && (canvas.place.foreign != nullptr || !is_editable(in, canvas.place.id)) &&
        !ImGui::GetIO().KeyShift));
  if (panning) pan_by_mouse(canvas);
  if (canvas.place.interactive)
    handle_cell_mouse(ui, in, state, canvas.place.id, canvas.place.transposed, under, queue);
  return ImGui::IsItemDeactivated() && ImGui::IsMouseReleased(0) && ImGui::GetIO().MouseDragMaxDistanceSqr[0] < 9;
}

void name_cells(Ui& ui, const MatrixCanvas& canvas, const std::string& name) {
  const Rect window = canvas.window();
  if (window.rows * window.cols > kMaxNamedCells || canvas.cell_w() < 4 || canvas.cell_h() < 4) return;
  for (Index r = window.row; r < window.row + window.rows; ++r)
    for (Index c = window.col; c < window.col + window.cols; ++c) {
      const CellRef cell = canvas.cell(r, c);
      ui.widgets->add(name + "/cell/" + std::to_string(cell.row) + "," + std::to_string(cell.col),
                      {canvas.x_of(double(c)), canvas.y_of(double(r))},
                      {canvas.x_of(double(c + 1)), canvas.y_of(double(r + 1))});
    }
}

// The place of a matrix that is being computed, could not be, or was stopped.
void draw_pending(Ui& ui, const StageInput& in, const MatrixPlace& place) {
  const ImVec2 max{place.min.x + place.size.x, place.min.y + place.size.y};
  struct Words {
    const char *name, *text;
  };
  const Words words = in.missing == Missing::kFailed    ? Words{"failed/", "not computed"}
                      : in.missing == Missing::kStopped ? Words{"stopped/", "stopped"}
                                                        : Words{"pending/", "computing …"};
  ui.widgets->add(words.name + matrix_name(place.id), place.min, max);
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRect({place.min.x - 0.5f, place.min.y - 0.5f}, {max.x + 0.5f, max.y + 0.5f}, to_u32(ui.colors().line),
                kMatrixCornerRadius, 0, 1);
  const bool fits = text_width(ui, FontRole::kSmall11, words.text) <= place.size.x;
  draw_text_in(ui, list, FontRole::kSmall11, place.min, max, ui.colors().dim, fits ? words.text : "…",
               TextAlign::kCenter);
  draw_title(ui, in, place, 0);
}

}  // namespace

MatrixPlace place_at(MatrixId id, Axis rows, Axis cols, ImVec2 min, ImVec2 size, std::string title,
                     std::string subtitle) {
  MatrixPlace place;
  place.id = id;
  place.rows = rows;
  place.cols = cols;
  place.min = {std::floor(min.x), std::floor(min.y)};
  place.size = {std::max(1.0f, std::floor(size.x)), std::max(1.0f, std::floor(size.y))};
  place.title = std::move(title);
  place.subtitle = std::move(subtitle);
  return place;
}

std::string shape_words(Index rows, Index cols) { return std::to_string(rows) + " × " + std::to_string(cols); }

std::string matrix_name(MatrixId id) {
  return "matrix/" + std::string(file_key(id.kind)) + "/" + std::to_string(id.head + 1);
}

bool draw_matrix(Ui& ui, const StageInput& in, StageState& state, const MatrixPlace& place, ActionQueue& queue) {
  const ShownCells cells = cells_at(in, place);
  if (!cells && in.computed.digest.refining && place.foreign == nullptr) draw_pending(ui, in, place);
  if (!cells || cells.rows == 0 || cells.cols == 0 || place.size.x < 1 || place.size.y < 1) return false;
  MatrixCanvas canvas = make_canvas(state, place, cells);
  if (state.selection && state.selection->id == place.id) {
    state.draws_selection = true;
    if (state.keyboard_leads) canvas.show(state.selection->cell());
  }
  const std::string name = place.foreign != nullptr ? "matrix/" + place.foreign->name : matrix_name(place.id);
  ui.widgets->add(name, place.min, canvas.max());
  ImGui::SetCursorScreenPos(place.min);
  ImGui::SetItemAllowOverlap();
  ImGui::InvisibleButton(
      name.c_str(), place.size,
      ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonRight | ImGuiButtonFlags_MouseButtonMiddle);
  const bool clicked = handle_mouse(ui, in, state, canvas, queue);
  canvas.picture = picture_of(ui, in, canvas);
  submit_heatmap(ui, in, canvas);
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->PushClipRect({place.min.x - 2, place.min.y - 2}, {canvas.max().x + 2, canvas.max().y + 2}, true);
  if (place.numbers) draw_numbers(ui, in, state, canvas);
  list->AddRect({place.min.x - 0.5f, place.min.y - 0.5f}, {canvas.max().x + 0.5f, canvas.max().y + 0.5f},
                to_u32(ui.colors().line), kMatrixCornerRadius, 0, 1);
  draw_marks(ui, in, state, canvas);
  list->PopClipRect();
  if (place.row_labels) draw_row_labels(ui, in, state, canvas);
  if (place.col_labels) draw_col_labels(ui, in, state, canvas);
  draw_axis_tips(ui, in, state, place, canvas.rows, canvas.cols);
  draw_title(ui, in, place, canvas.cell_w());
  name_cells(ui, canvas, name);
  if (state.scrub.active && state.scrub.cell.id == place.id) {
    ImVec2 lo, hi;
    const CellRef& cell = state.scrub.cell;
    if (canvas.box({cell.row, cell.col, 1, 1}, lo, hi)) draw_dragged_value(ui, in, state, lo, hi);
  }
  if (state.edit.open && state.selection && state.selection->id == place.id) {
    ImVec2 lo, hi;
    const CellRef cell = state.selection->cell();
    if (canvas.box({cell.row, cell.col, 1, 1}, lo, hi)) draw_cell_field(ui, in, state, lo, hi, queue);
  }
  return clicked;
}

}  // namespace qkv
