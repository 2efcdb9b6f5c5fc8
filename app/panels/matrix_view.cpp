#include "app/panels/matrix_view.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/panels/axis_tips.h"
#include "app/panels/cell_editor.h"
#include "app/panels/cell_text.h"
#include "app/panels/lens.h"

namespace qkv {
namespace {

constexpr double kLabelSize = 13;
constexpr float kLabelLine = 16;  // smallest distance of two labels
constexpr float kCornerRadius = 3;
constexpr Index kMaxNamedCells = 4096;

// A matrix on screen: the mapping between drawn cells and pixels.
struct Canvas {
  const MatrixPlace& place;
  const ShownCells& cells;
  Rect part;         // stored
  Index rows, cols;  // drawn, of the part
  AxisView& row_view;
  AxisView& col_view;
  const Picture* picture = nullptr;  // of cells that are not held

  // Follow the views, which change while the mouse pans or zooms.
  double cell_w() const { return place.size.x / col_view.visible(static_cast<double>(cols)); }
  double cell_h() const { return place.size.y / row_view.visible(static_cast<double>(rows)); }
  ImVec2 max() const { return {place.min.x + place.size.x, place.min.y + place.size.y}; }
  float x_of(double col) const { return place.min.x + static_cast<float>((col - col_view.first) * cell_w()); }
  float y_of(double row) const { return place.min.y + static_cast<float>((row - row_view.first) * cell_h()); }
  double col_at(float x) const { return col_view.first + (x - place.min.x) / cell_w(); }
  double row_at(float y) const { return row_view.first + (y - place.min.y) / cell_h(); }
  // Stored cell of a drawn one.
  CellRef cell(Index row, Index col) const {
    if (place.transposed) std::swap(row, col);
    return {place.id, part.row + row, part.col + col};
  }
  // Scrolls so that a stored cell is inside the viewport.
  void show(const CellRef& stored) const {
    double row = static_cast<double>(stored.row - part.row), col = static_cast<double>(stored.col - part.col);
    if (place.transposed) std::swap(row, col);
    const auto reveal = [](AxisView& view, double count, double at) {
      view.first = std::clamp(view.first, at + 1 - view.visible(count), at);
      view.clamp(count);
    };
    reveal(row_view, static_cast<double>(rows), row);
    reveal(col_view, static_cast<double>(cols), col);
  }
  // Drawn rectangle of a stored one, clipped to the viewport; false where nothing of it shows.
  bool box(const Rect& stored, ImVec2& lo, ImVec2& hi) const {
    double r = static_cast<double>(stored.row - part.row), c = static_cast<double>(stored.col - part.col);
    double rs = static_cast<double>(stored.rows), cs = static_cast<double>(stored.cols);
    if (place.transposed) std::swap(r, c), std::swap(rs, cs);
    lo = {std::max(x_of(c), place.min.x), std::max(y_of(r), place.min.y)};
    hi = {std::min(x_of(c + cs), max().x), std::min(y_of(r + rs), max().y)};
    return lo.x < hi.x && lo.y < hi.y;
  }
  // Of a cell that is drawn; NaN where it is not known.
  float value(const CellRef& cell) const {
    if (cells.held != nullptr) return (*cells.held)(cell.row, cell.col);
    const auto known = picture != nullptr ? picture->cell(cell.row, cell.col) : std::nullopt;
    return known.value_or(std::numeric_limits<float>::quiet_NaN());
  }
  Index first_row() const { return std::max<Index>(0, static_cast<Index>(std::floor(row_view.first))); }
  Index first_col() const { return std::max<Index>(0, static_cast<Index>(std::floor(col_view.first))); }
  Index end_row() const { return std::min(rows, static_cast<Index>(std::ceil(row_at(max().y) - 1e-6))); }
  Index end_col() const { return std::min(cols, static_cast<Index>(std::ceil(col_at(max().x) - 1e-6))); }
};

// What a place shows, in which colours.
ShownCells cells_at(const StageInput& in, const MatrixPlace& place) {
  if (place.foreign == nullptr) return displayed_cells(in, place.id);
  const Matrix* values = place.foreign->values;
  return {values->rows(), values->cols(), values, nullptr};
}
ColorRange range_at(const StageInput& in, const MatrixPlace& place) {
  return place.foreign != nullptr ? place.foreign->range : shown_range(in, place.id);
}
const std::string& colormap_at(const StageInput& in, const MatrixPlace& place) {
  return place.foreign != nullptr ? place.foreign->colormap : shown_colormap(in, place.id);
}

Canvas make_canvas(StageState& state, const MatrixPlace& place, const ShownCells& cells) {
  const Rect part = place.part.rows > 0 ? place.part : Rect{0, 0, cells.rows, cells.cols};
  const Index rows = place.transposed ? part.cols : part.rows, cols = place.transposed ? part.rows : part.cols;
  AxisView& row_view = state.axes[place.rows];
  AxisView& col_view = state.axes[place.cols];
  row_view.clamp(static_cast<double>(rows));
  col_view.clamp(static_cast<double>(cols));
  return {place, cells, part, rows, cols, row_view, col_view, nullptr};
}

void draw_held(const StageInput& in, const Canvas& canvas, HeatmapDraw& draw) {
  const MatrixKind kind = canvas.place.id.kind;
  draw.version = in.version;
  draw.values = canvas.cells.held->data();
  draw.rows = static_cast<int>(canvas.cells.rows);
  draw.cols = static_cast<int>(canvas.cells.cols);
  if (const ForeignMatrix* foreign = canvas.place.foreign) {
    draw.key = (std::uint64_t{1} << 62) | foreign->key;
    draw.version = foreign->version;
    return;
  }
  if (scale_group(kind) == ScaleGroup::kWeights || kind == MatrixKind::kKeep)
    if (in.computed.digest.hidden > 0) draw.keep = in.computed.trace.keep->data();
}

// Blocks of cells in the place of cells. False where there is nothing to draw yet.
bool draw_picture(const Picture* picture, const MatrixPlace& place, HeatmapDraw& draw) {
  if (picture == nullptr || picture->values.size() == 0) return false;
  draw.key |= std::uint64_t{1} << 63;  // not the textures of a held matrix
  draw.version = picture->version;
  draw.values = picture->values.data();
  if (place.id.kind == MatrixKind::kKeep) draw.keep = draw.values;
  if (picture->keep.size() > 0) draw.keep = picture->keep.data();
  draw.rows = static_cast<int>(picture->blocks.rows);
  draw.cols = static_cast<int>(picture->blocks.cols);
  double row_size = std::exp2(picture->row_level), col_size = std::exp2(picture->col_level);
  auto row = static_cast<double>(picture->blocks.row), col = static_cast<double>(picture->blocks.col);
  if (place.transposed) std::swap(row_size, col_size), std::swap(row, col);
  draw.cell_w *= col_size;
  draw.cell_h *= row_size;
  draw.first_row = draw.first_row / row_size - row;
  draw.first_col = draw.first_col / col_size - col;
  draw.origin_row = row;
  draw.origin_col = col;
  return true;
}

void submit_heatmap(Ui& ui, const StageInput& in, const Canvas& canvas) {
  const MatrixPlace& place = canvas.place;
  HeatmapDraw draw;
  draw.key = (static_cast<std::uint64_t>(place.id.kind) << 32) | static_cast<std::uint32_t>(place.id.head);
  draw.transposed = place.transposed;
  draw.min = place.min;
  draw.max = canvas.max();
  const Index part_row = place.transposed ? canvas.part.col : canvas.part.row;
  const Index part_col = place.transposed ? canvas.part.row : canvas.part.col;
  draw.first_row = canvas.row_view.first + static_cast<double>(part_row);
  draw.first_col = canvas.col_view.first + static_cast<double>(part_col);
  draw.cell_w = canvas.cell_w();
  draw.cell_h = canvas.cell_h();
  if (canvas.cells.held != nullptr) {
    draw_held(in, canvas, draw);
  } else if (!draw_picture(canvas.picture, place, draw)) {
    return;
  }
  draw.colormap = colormap_at(in, place);
  draw.theme = ui.theme;
  draw.range = range_at(in, place);
  if (place.id.kind == MatrixKind::kKeep && place.foreign == nullptr) {
    // Visible keys are quiet, hidden ones hatched.
    draw.colormap = "grey";
    draw.range = {0, ui.theme == ThemeName::kDark ? 5.0f : 1.06f, false};
  }
  draw.radius = kCornerRadius;
  draw.sink = ui.sink;
  ui.heatmaps.push_back(std::move(draw));
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddCallback(
      [](const ImDrawList*, const ImDrawCmd* command) {
        const auto& heatmap = *static_cast<const HeatmapDraw*>(command->UserCallbackData);
        if (heatmap.sink != nullptr) heatmap.sink->draw(heatmap, command->ClipRect);
      },
      &ui.heatmaps.back());
  list->AddCallback(ImDrawCallback_ResetRenderState, nullptr);
}

bool is_visible(const StageInput& in, const CellRef& cell) {
  const Trace& trace = in.computed.trace;
  if (trace.streams.empty()) return trace.keep(cell.row, cell.col) != 0;
  return mask_reason(trace.problem.options, trace.shapes.nq, trace.shapes.nk, cell.row, cell.col) ==
         MaskReason::kVisible;
}

void draw_numbers(Ui& ui, const StageInput& in, const StageState& state, const Canvas& canvas) {
  const Rect window{canvas.first_row(), canvas.first_col(), canvas.end_row() - canvas.first_row(),
                    canvas.end_col() - canvas.first_col()};
  if (window.rows <= 0 || window.cols <= 0) return;
  // Numbers of a matrix that is not held come all at once.
  if (canvas.cells.held == nullptr && (canvas.picture == nullptr || !canvas.picture->complete)) return;
  const bool in_units = !canvas.place.title.empty() || canvas.place.unit_is_written;
  const bool foreign = canvas.place.foreign != nullptr;
  const float factor = in_units && !foreign ? lens_factor(in, canvas.place.id) : 1;
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

Color label_ink(const Ui& ui, const AxisNames& labels, Index index, Index lit) {
  if (index == lit) return ui.colors().accent;
  return labels.is_special(index) ? ui.colors().faint : ui.colors().dim;
}

void draw_row_labels(Ui& ui, const StageInput& in, const StageState& state, const Canvas& canvas) {
  const MatrixPlace& place = canvas.place;
  const AxisNames labels = shown_names(in, place.rows, canvas.rows);
  const Index step = std::max<Index>(1, static_cast<Index>(std::ceil(kLabelLine / canvas.cell_h())));
  const auto focus = focus_cell(state);
  const TokenLink link = focus ? linked_tokens(*focus) : TokenLink{};
  const Index lit = place.rows == Axis::kQueries ? link.query : link.key;
  for (Index r = (canvas.first_row() + step - 1) / step * step; r < canvas.end_row(); r += step) {
    const float y = canvas.y_of(double(r) + 0.5);
    if (y < place.min.y - 1 || y > canvas.max().y + 1) continue;
    draw_label_in(ui, ImGui::GetWindowDrawList(), {place.min.x - 8 - place.label_room, y - 12},
                  {place.min.x - 8, y + 12}, labels[r], kLabelSize, label_ink(ui, labels, r, lit), TextAlign::kRight);
  }
}

// One label standing upright, reading upwards, its end at the cells.
void draw_upright(Ui& ui, float x, float bottom, float room, const std::string& text, Color color) {
  TextStyle style{kLabelSize, false, color, 0};
  if (ui.labels->measure(text, style).width > room) style.max_width = room;
  const Label& label = ui.labels->get(text, style);
  const ImVec2 size = label.texture_size;
  if (size.x <= 0) return;
  const ImVec2 at = snap(ui, {x - size.y / 2, bottom});
  ImGui::GetWindowDrawList()->AddImageQuad(label.texture, at, {at.x, at.y - size.x}, {at.x + size.y, at.y - size.x},
                                           {at.x + size.y, at.y});
}

void draw_col_labels(Ui& ui, const StageInput& in, const StageState& state, const Canvas& canvas) {
  const MatrixPlace& place = canvas.place;
  const AxisNames labels = shown_names(in, place.cols, canvas.cols);
  const bool upright = place.top_room > 24;
  const Index step = upright ? std::max<Index>(1, static_cast<Index>(std::ceil(kLabelLine / canvas.cell_w()))) : 1;
  const auto focus = focus_cell(state);
  const TokenLink link = focus ? linked_tokens(*focus) : TokenLink{};
  const Index lit = place.cols == Axis::kQueries ? link.query : link.key;
  for (Index c = (canvas.first_col() + step - 1) / step * step; c < canvas.end_col(); c += step) {
    const float x = canvas.x_of(double(c) + 0.5);
    if (x < place.min.x || x > canvas.max().x) continue;
    const Color color = label_ink(ui, labels, c, lit);
    const std::string text = labels[c];
    if (upright && label_width(ui, text, kLabelSize) + 2 > canvas.cell_w())
      draw_upright(ui, x, place.min.y - 6, place.top_room - 8, text, color);
    else
      draw_label_in(ui, ImGui::GetWindowDrawList(), {canvas.x_of(double(c)), place.min.y - 22},
                    {canvas.x_of(double(c + 1)), place.min.y - 2}, text, kLabelSize, color, TextAlign::kCenter);
  }
}

void draw_title(Ui& ui, const StageInput& in, const Canvas& canvas) {
  const MatrixPlace& place = canvas.place;
  if (place.title.empty()) return;
  constexpr float kBeside = 26;   // that a title may stand out, less than matrices are apart
  constexpr double kNumber = 20;  // narrower cells have no numbers
  const bool foreign = place.foreign != nullptr;
  const std::string title = foreign ? place.title
                                    : lens_title(ui, in, place.id, place.transposed, place.title,
                                                 {place.size.x + kBeside, canvas.cell_w() >= kNumber});
  const std::string subtitle = foreign ? place.subtitle : lens_subtitle(in, place.id, place.subtitle);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float top = place.min.y - (place.col_labels ? place.top_room : 0) - place.bar_room - 22;
  const float width = draw_formula(ui, list, FontRole::kBold13, {place.min.x, top}, ui.colors().text, title);
  if (width + 8 + text_width(ui, FontRole::kSmall11, subtitle) <= place.size.x + 16)
    draw_text(ui, list, FontRole::kSmall11, {place.min.x + width + 8, top + 1.5f}, ui.colors().dim, subtitle);
}

void draw_marks(Ui& ui, const StageInput& in, const StageState& state, const Canvas& canvas) {
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

const Picture* picture_of(Ui& ui, const StageInput& in, const Canvas& canvas) {
  if (canvas.cells.held != nullptr || in.pictures == nullptr) return nullptr;
  PictureRequest request;
  request.id = canvas.place.id;
  request.cell_pixels = std::sqrt(canvas.cell_w() * canvas.cell_h()) * static_cast<double>(ui.scale);
  request.masked = in.computed.digest.hidden > 0;
  Rect drawn = {canvas.first_row(), canvas.first_col(), canvas.end_row() - canvas.first_row(),
                canvas.end_col() - canvas.first_col()};
  if (canvas.place.transposed) drawn = {drawn.col, drawn.row, drawn.cols, drawn.rows};
  request.visible = {canvas.part.row + drawn.row, canvas.part.col + drawn.col, drawn.rows, drawn.cols};
  return in.pictures->get(in.computed.trace, request);
}

std::optional<CellRef> cell_under_mouse(const Canvas& canvas) {
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const auto row = static_cast<Index>(std::floor(canvas.row_at(mouse.y)));
  const auto col = static_cast<Index>(std::floor(canvas.col_at(mouse.x)));
  if (row < 0 || row >= canvas.rows || col < 0 || col >= canvas.cols) return std::nullopt;
  return canvas.cell(row, col);
}

// Queries and keys of one list of tokens zoom together, so that S and A stay in proportion whatever was pointed at.
void zoom_other_side(const StageInput& in, StageState& state, const Canvas& canvas, double factor) {
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

void handle_wheel(const StageInput& in, StageState& state, const Canvas& canvas) {
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

void pan_by_mouse(const Canvas& canvas) {
  const ImVec2 delta = ImGui::GetIO().MouseDelta;
  canvas.col_view.first -= delta.x / canvas.cell_w();
  canvas.row_view.first -= delta.y / canvas.cell_h();
  canvas.col_view.clamp(double(canvas.cols));
  canvas.row_view.clamp(double(canvas.rows));
}

void name_cells(Ui& ui, const Canvas& canvas, const std::string& name) {
  const Index rows = canvas.end_row() - canvas.first_row(), cols = canvas.end_col() - canvas.first_col();
  if (rows * cols > kMaxNamedCells || canvas.cell_w() < 4 || canvas.cell_h() < 4) return;
  for (Index r = canvas.first_row(); r < canvas.end_row(); ++r)
    for (Index c = canvas.first_col(); c < canvas.end_col(); ++c) {
      const CellRef cell = canvas.cell(r, c);
      ui.widgets->add(name + "/cell/" + std::to_string(cell.row) + "," + std::to_string(cell.col),
                      {canvas.x_of(double(c)), canvas.y_of(double(r))},
                      {canvas.x_of(double(c + 1)), canvas.y_of(double(r + 1))});
    }
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

float row_label_room(Ui& ui, const AxisNames& labels, float limit) {
  // Some hundred of many tell how wide they are.
  constexpr Index kMostMeasured = 512;
  const Index step = (labels.size() + kMostMeasured - 1) / kMostMeasured;
  float widest = 0;
  for (Index i = 0; i < labels.size(); i += step) widest = std::max(widest, label_width(ui, labels[i], kLabelSize));
  return std::min(std::ceil(widest), limit);
}

float col_label_room(Ui& ui, const AxisNames& labels, float cell, float limit) {
  const float widest = row_label_room(ui, labels, limit);
  return widest + 4 <= cell ? 22.0f : widest + 10;
}

bool draw_matrix(Ui& ui, const StageInput& in, StageState& state, const MatrixPlace& place, ActionQueue& queue) {
  const ShownCells cells = cells_at(in, place);
  if (!cells || cells.rows == 0 || cells.cols == 0 || place.size.x < 1 || place.size.y < 1) return false;
  Canvas canvas = make_canvas(state, place, cells);
  if (state.selection && state.selection->id == place.id) {
    state.draws_selection = true;
    if (state.keyboard_leads) canvas.show(state.selection->cell());
  }
  const bool foreign = place.foreign != nullptr;
  const std::string name = foreign ? "matrix/" + place.foreign->name : matrix_name(place.id);
  ui.widgets->add(name, place.min, canvas.max());
  ImGui::SetCursorScreenPos(place.min);
  ImGui::SetItemAllowOverlap();
  ImGui::InvisibleButton(
      name.c_str(), place.size,
      ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonRight | ImGuiButtonFlags_MouseButtonMiddle);
  const bool hovered = ImGui::IsItemHovered() || (ImGui::IsItemActive() && state.scrub.active);
  const auto under = cell_under_mouse(canvas);
  if (hovered && under) {
    state.hover = under;
    state.pointed = place.id;
    handle_wheel(in, state, canvas);
  }
  const bool panning =
      ImGui::IsItemActive() &&
      (ImGui::IsMouseDragging(2, 2) ||
       (ImGui::IsMouseDragging(0, 3) && (foreign || !is_editable(in, place.id)) && !ImGui::GetIO().KeyShift));
  if (panning) pan_by_mouse(canvas);
  bool clicked = false;
  if (place.interactive) {
    handle_cell_mouse(ui, in, state, place.id, place.transposed, under, queue);
  }
  if (ImGui::IsItemDeactivated() && ImGui::IsMouseReleased(0) && ImGui::GetIO().MouseDragMaxDistanceSqr[0] < 9)
    clicked = true;
  canvas.picture = picture_of(ui, in, canvas);
  submit_heatmap(ui, in, canvas);
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->PushClipRect({place.min.x - 2, place.min.y - 2}, {canvas.max().x + 2, canvas.max().y + 2}, true);
  if (place.numbers) draw_numbers(ui, in, state, canvas);
  list->AddRect({place.min.x - 0.5f, place.min.y - 0.5f}, {canvas.max().x + 0.5f, canvas.max().y + 0.5f},
                to_u32(ui.colors().line), kCornerRadius, 0, 1);
  draw_marks(ui, in, state, canvas);
  list->PopClipRect();
  if (place.row_labels) draw_row_labels(ui, in, state, canvas);
  if (place.col_labels) draw_col_labels(ui, in, state, canvas);
  draw_axis_tips(ui, in, state, place, canvas.rows, canvas.cols);
  draw_title(ui, in, canvas);
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
