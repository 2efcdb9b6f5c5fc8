#include "app/panels/lens.h"

#include <algorithm>
#include <cmath>

#include "app/panels/inspector.h"
#include "app/panels/inspector_words.h"
#include "core/base/number_text.h"

namespace qkv {
namespace {

// The unit of a colour bar, of all matrices that share it.
int bar_power(const StageInput& in, MatrixId id) { return has_lens(in, id) ? power_of(shown_extent(in, id)) : 0; }

int power_of(const StageInput& in, MatrixId id) { return has_lens(in, id) ? power_of(in.lens->each.at(id)) : 0; }

bool is_pinned(MatrixKind kind) {
  return kind == MatrixKind::kOut || kind == MatrixKind::kConcat || kind == MatrixKind::kHeadsOut ||
         kind == MatrixKind::kAttn;
}

std::string full_digits(double value) {
  if (!std::isfinite(value)) return format_value(value, 0);
  return value == std::round(value) && std::abs(value) < 1e15 ? format_fixed(value, 0) : grouped_digits(value, 15);
}

std::vector<LensWord> precision_words(const Precision& precision, const CellRef& cell) {
  const double exact = precision.exact.at(cell.id)(cell.row, cell.col);
  const auto rounded = static_cast<double>(precision.rounded.at(cell.id)(cell.row, cell.col));
  const std::string name(format_name(precision.format));
  std::vector<LensWord> words = {{"float64", full_digits(exact)}, {name, full_digits(rounded)}};
  if (rounded == exact) {
    words.push_back({"difference", "0"});
  } else if (std::isfinite(rounded - exact)) {
    words.push_back({"difference", format_value(rounded - exact, 6)});
    const double ulps = std::abs(rounded - exact) / ulp_in(precision.format, exact);
    words.push_back({"in " + name + " ulp", format_value(ulps, 2)});
  } else if (std::isfinite(exact)) {
    words.push_back({"difference", std::isnan(rounded) ? "NaN comes of an overflow" : "beyond the range"});
  }
  return words;
}

}  // namespace

bool has_lens(const StageInput& in, MatrixId id) {
  if (in.lens == nullptr) return false;
  const Matrix* shown = in.lens->find(id);
  const Matrix* values = in.computed.trace.find(id);
  return shown != nullptr && values != nullptr && shown->rows() == values->rows() && shown->cols() == values->cols();
}

ShownCells displayed_cells(const StageInput& in, MatrixId id) {
  if (!has_lens(in, id)) return shown_cells(in, id);
  const Matrix& shown = *in.lens->find(id);
  return {shown.rows(), shown.cols(), &shown, nullptr};
}

void follow_target(const Trace& trace, StageState& state) {
  const auto is_there = [&](const MatrixCell& cell) {
    const Matrix* matrix = trace.find(cell.id);
    return matrix != nullptr && cell.row < matrix->rows() && cell.col < matrix->cols();
  };
  if (!state.selection) {
    state.lens_target.reset();
  } else if (is_pinned(state.selection->id.kind)) {
    state.lens_target = MatrixCell{state.selection->id, state.selection->row, state.selection->col};
  }
  if (state.lens_target && !is_there(*state.lens_target)) state.lens_target.reset();
}

std::string lens_title(const Ui& ui, const StageInput& in, MatrixId id, bool transposed, const std::string& title,
                       const TitleRoom& room) {
  if (!has_lens(in, id)) return title;
  const LensName name = lens_matrix_name(*in.lens, id.kind, transposed);
  const std::string unit = room.numbers ? unit_words(power_of(in, id)) : "";
  return (formula_width(ui, FontRole::kBold13, name.whole + unit) <= room.width ? name.whole : name.brief) + unit;
}

std::string lens_subtitle(const StageInput& in, MatrixId id, const std::string& subtitle) {
  return has_lens(in, id) ? lens_note(*in.lens, id) : subtitle;
}

std::string lens_bar_name(const StageInput& in, MatrixId id, const std::string& name) {
  return has_lens(in, id) ? lens_bar_name(*in.lens, name) + unit_words(bar_power(in, id)) : name;
}

float lens_bar_factor(const StageInput& in, MatrixId id) { return unit_factor(bar_power(in, id)); }

float lens_factor(const StageInput& in, MatrixId id) { return unit_factor(power_of(in, id)); }

std::string lens_line(const StageInput& in) {
  return in.lens == nullptr ? "" : lens_heading(*in.lens, in.computed.trace.shapes);
}

std::vector<LensWord> lens_words(const StageInput& in, const CellRef& cell) {
  if (!has_lens(in, cell.id)) return {};
  if (in.lens->precision) return precision_words(*in.lens->precision, cell);
  const Gradient& gradient = *in.lens->gradient;
  const double by = gradient.by.at(cell.id)(cell.row, cell.col);
  return {{"∂L/∂ this cell", std::isfinite(by) && std::abs(by) < 1e-6 ? format_value(by, 9) : full_digits(by)},
          {"L = " + target_words(gradient.target, in.computed.trace.shapes, 1), full_digits(gradient.value)}};
}

float draw_lens_choice(Ui& ui, const StageInput& in, float right, float top, ActionQueue& queue) {
  constexpr float kSegments = 234, kFormat = 100, kGap = 8;
  static constexpr Choice kLenses[] = {{"Values"}, {"Gradient"}, {"Precision"}};
  static constexpr Choice kFormats[] = {{"float32"}, {"bfloat16"}, {"float16"}};
  static constexpr Lens kFormatLenses[] = {Lens::kFloat32, Lens::kBfloat16, Lens::kFloat16};
  const Lens lens = in.session.view.lens;
  const auto choose = [&](Lens chosen) {
    ViewSettings view = in.session.view;
    view.lens = chosen;
    queue.push(SetView{view});
  };
  const std::optional<NumberFormat> format = lens_format(lens);
  const int current = format ? 2 : lens == Lens::kGradient ? 1 : 0;
  ImGui::SetCursorScreenPos({right - kSegments, top});
  ImGui::BeginChild("lens", {kSegments, 30}, false, ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoNav);
  if (const auto picked = segmented(ui, "lens", kLenses, current)) {
    choose(*picked == 0 ? Lens::kValues : *picked == 1 ? Lens::kGradient : Lens::kBfloat16);
  }
  // On the stage the control's own ground is not seen.
  ImGui::GetWindowDrawList()->AddRect(ImGui::GetWindowPos(),
                                      {ImGui::GetWindowPos().x + kSegments, ImGui::GetWindowPos().y + 30},
                                      to_u32(ui.colors().line), 8, 0, 1);
  ImGui::EndChild();
  float left = right - kSegments;
  if (format) {
    left -= kFormat + kGap;
    const int at = *format == NumberFormat::kFloat32 ? 0 : *format == NumberFormat::kBfloat16 ? 1 : 2;
    if (const auto picked =
            choice_field(ui, "field/lens-format", {{left, top + 1}, {left + kFormat, top + 29}}, kFormats, at)) {
      choose(kFormatLenses[*picked]);
    }
  }
  return left;
}

void leave_lens(const StageInput& in, ActionQueue& queue) {
  if (in.session.view.lens == Lens::kValues) return;
  ViewSettings view = in.session.view;
  view.lens = Lens::kValues;
  queue.push(SetView{view});
  queue.messages.push_back("Back to Values: they are what is edited");
}

void draw_dragged_value(Ui& ui, const StageInput& in, const StageState& state, ImVec2 min, ImVec2 max) {
  const CellRef& cell = state.scrub.cell;
  if (!has_lens(in, cell.id)) return;
  const std::string text = cell_name(cell.id, cell.row, cell.col, in.session, in.tokens) + " = " +
                           format_shortest(shown_cells(in, cell.id).at(cell.row, cell.col));
  ImDrawList* list = ImGui::GetForegroundDrawList();
  const float width = label_width(ui, text, 13) + 20, x = (min.x + max.x - width) / 2;
  const ImVec2 lo{std::max(4.0f, x), min.y - 34}, hi{std::max(4.0f, x) + width, min.y - 8};
  list->AddRectFilled(lo, hi, to_u32(ui.colors().text), 6);
  draw_label_in(ui, list, {lo.x + 10, lo.y}, {hi.x - 10, hi.y}, text, 13, ui.colors().panel, TextAlign::kCenter);
  ui.widgets->add("dragged-value", lo, hi);
}

}  // namespace qkv
