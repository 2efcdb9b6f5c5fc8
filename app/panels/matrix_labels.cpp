#include "app/panels/matrix_labels.h"

#include <algorithm>
#include <cmath>

#include "app/panels/lens.h"
#include "core/base/utf8.h"
#include "core/figure/label_step.h"

namespace qkv {
namespace {

constexpr double kLabelSize = 13;
constexpr float kLabelLine = 16;  // smallest distance of two labels

Color label_ink(const Ui& ui, const AxisNames& labels, Index index, Index lit) {
  if (index == lit) return ui.colors().accent;
  return labels.is_special(index) ? ui.colors().faint : ui.colors().dim;
}

// The first label that is drawn from entry `from` on.
Index first_in_sight(const LabelSteps& steps, Index from) {
  return steps.first + std::max<Index>(0, from - steps.first + steps.step - 1) / steps.step * steps.step;
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

// One character of a script that is read downwards too, or a symbol: it never lies on its side.
bool is_glyph(const std::string& text) {
  const bool has_ascii = std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 128; });
  return count_code_points(text) == 1 || !has_ascii;
}

}  // namespace

void draw_row_labels(Ui& ui, const StageInput& in, const StageState& state, const MatrixCanvas& canvas) {
  const MatrixPlace& place = canvas.place;
  const AxisNames labels = shown_names(in, place.rows, canvas.rows);
  const LabelSteps steps = label_steps(canvas.rows, kLabelLine / canvas.cell_h(), [&](Index r) { return labels[r]; });
  const auto focus = focus_cell(state);
  const TokenLink link = focus ? linked_tokens(*focus) : TokenLink{};
  const Index lit = place.rows == Axis::kQueries ? link.query : link.key;
  for (Index r = first_in_sight(steps, canvas.first_row()); r < canvas.end_row(); r += steps.step) {
    const float y = canvas.y_of(double(r) + 0.5);
    if (y < place.min.y - 1 || y > canvas.max().y + 1) continue;
    draw_label_in(ui, ImGui::GetWindowDrawList(), {place.min.x - 8 - place.label_room, y - 12},
                  {place.min.x - 8, y + 12}, labels[r], kLabelSize, label_ink(ui, labels, r, lit), TextAlign::kRight);
  }
}

void draw_col_labels(Ui& ui, const StageInput& in, const StageState& state, const MatrixCanvas& canvas) {
  const MatrixPlace& place = canvas.place;
  const AxisNames labels = shown_names(in, place.cols, canvas.cols);
  const bool upright = place.top_room > 24;
  const LabelSteps steps =
      upright ? label_steps(canvas.cols, kLabelLine / canvas.cell_w(), [&](Index c) { return labels[c]; })
              : LabelSteps{};
  const auto focus = focus_cell(state);
  const TokenLink link = focus ? linked_tokens(*focus) : TokenLink{};
  const Index lit = place.cols == Axis::kQueries ? link.query : link.key;
  const Index first = first_in_sight(steps, canvas.first_col()), step = steps.step;
  const double room = canvas.cell_w() * static_cast<double>(step);
  const auto is_wide = [&](const std::string& text) { return label_width(ui, text, kLabelSize) + 2 > room; };
  bool all_upright = false;  // words stand the same way
  for (Index c = first; upright && !all_upright && c < canvas.end_col(); c += step) all_upright = is_wide(labels[c]);
  for (Index c = first; c < canvas.end_col(); c += step) {
    const float x = canvas.x_of(double(c) + 0.5);
    if (x < place.min.x || x > canvas.max().x) continue;
    const Color color = label_ink(ui, labels, c, lit);
    const std::string text = labels[c];
    if (all_upright && (!is_glyph(text) || is_wide(text)))
      draw_upright(ui, x, place.min.y - 6, place.top_room - 8, text, color);
    else
      draw_label_in(ui, ImGui::GetWindowDrawList(), {x - static_cast<float>(room) / 2, place.min.y - 22},
                    {x + static_cast<float>(room) / 2, place.min.y - 2}, text, kLabelSize, color, TextAlign::kCenter);
  }
}

void draw_title(Ui& ui, const StageInput& in, const MatrixPlace& place, double cell_w) {
  if (place.title.empty()) return;
  constexpr float kBeside = 26;   // that a title may stand out, less than matrices are apart
  constexpr double kNumber = 20;  // narrower cells have no numbers
  const bool foreign = place.foreign != nullptr;
  const std::string title = foreign ? place.title
                                    : lens_title(ui, in, place.id, place.transposed, place.title,
                                                 {place.size.x + kBeside, cell_w >= kNumber});
  const std::string subtitle = foreign ? place.subtitle : lens_subtitle(in, place.id, place.subtitle);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float top = place.min.y - (place.col_labels ? place.top_room : 0) - place.bar_room - 22;
  const float width = draw_formula(ui, list, FontRole::kBold13, {place.min.x, top}, ui.colors().text, title);
  if (width + 8 + text_width(ui, FontRole::kSmall11, subtitle) <= place.size.x + 16)
    draw_text(ui, list, FontRole::kSmall11, {place.min.x + width + 8, top + 1.5f}, ui.colors().dim, subtitle);
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

}  // namespace qkv
