#include "app/panels/inspector.h"

#include <algorithm>
#include <cmath>

#include "app/panels/inspector_parts.h"
#include "app/panels/inspector_words.h"
#include "app/panels/lens.h"
#include "core/base/number_text.h"

namespace qkv {
namespace {

void write_precision(InspectorWriter& w, const Explanation& e) {
  if (!std::isfinite(e.value)) return;
  w.section("FULL PRECISION");
  const bool whole = e.value == std::round(e.value) && std::abs(e.value) < 1e15;
  w.pair("float64", whole ? format_fixed(e.value, 0) : grouped_digits(e.value, 15));
  if (std::isnan(e.stored)) return;  // not computed yet
  std::string stored = format_shortest(e.stored);
  if (stored.starts_with('-')) stored.replace(0, 1, "−");
  w.pair("float32", stored);
}

void write_lens(InspectorWriter& w, const StageInput& in, const CellRef& cell) {
  const std::vector<LensWord> words = lens_words(in, cell);
  if (words.empty()) return;
  w.section(in.lens->precision ? "PRECISION" : "GRADIENT");
  for (const LensWord& word : words) w.pair(word.name, word.value);
}

void write_empty(InspectorWriter& w, const StageInput& in) {
  if (!in.session.note.empty()) {
    w.caps("ABOUT THIS SESSION");
    w.paragraph(in.session.note);
    w.space(24);
  }
  w.caps("TRY");
  if (is_weights_only(in.session.problem.source)) {
    w.paragraph("Rest the pointer on a cell: its share of the row and its rank are written out here.");
    w.space(8);
    w.paragraph("Click a cell of A and type a number, or drag it sideways. Rows are never made to sum to 1.");
    return;
  }
  w.paragraph(
      "Rest the pointer on a cell: its row and column light up in the factors, and its sum is written out here.");
  w.space(8);
  const bool projected = std::holds_alternative<ProjectedSource>(in.session.problem.source);
  w.paragraph(std::string(projected ? "Open X · W, click a cell of X or of a W" : "Click a cell of Q, K or V") +
              " and type a number, or drag it sideways. Every later step follows at once.");
}

std::string big_value(const Explanation& e, int decimals) {
  if (e.id.kind == MatrixKind::kKeep) return e.mask == MaskReason::kVisible ? "visible" : "hidden";
  return format_value(std::isfinite(e.value) ? e.value : static_cast<double>(e.stored), std::max(3, decimals));
}

void write_sort(InspectorWriter& w, HeadsState& heads) {
  heading(w.ui(), "SORT HEADS BY");
  w.space(4);
  static constexpr Choice kOrders[] = {
      {"number"}, {"entropy", "lowest first"}, {"previous token", "highest first"}, {"first token", "highest first"}};
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  ImGui::Dummy({width, 30});
  if (const auto picked =
          choice_field(w.ui(), "field/order", {at, {at.x + width, at.y + 30}}, kOrders, static_cast<int>(heads.order)))
    heads.order = static_cast<HeadOrder>(*picked);
}

void look_at(const StageInput& in, const std::optional<CellRef>& cell, InspectorState& inspector) {
  if (inspector.cell == cell && inspector.version == in.version) return;
  inspector = {cell, in.version, std::nullopt, Matrix()};
  if (!cell) return;
  inspector.explanation = explain(in.computed.trace, cell->id, cell->row, cell->col);
  const bool looks = cell->id.kind == MatrixKind::kAttn || cell->id.kind == MatrixKind::kHeadsOut;
  if (!inspector.explanation || !looks) return;
  const ShownCells attn = shown_cells(in, {MatrixKind::kAttn, cell->id.head});
  inspector.weights = attn.block({cell->row, 0, 1, attn.cols});
}

}  // namespace

std::string grouped_digits(double value, int digits) {
  // A leading 0 is no significant digit.
  const int whole = value == 0 ? 1 : std::max(0, static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1);
  if (whole > digits || (value != 0 && std::abs(value) < 1e-6)) return format_shortest(value);
  const std::string plain = format_fixed(value, digits - whole);
  const std::size_t point = plain.find('.');
  if (point == std::string::npos) return plain;
  std::string text = plain.substr(0, point + 1);
  for (std::size_t i = point + 1; i < plain.size(); ++i) {
    if (i > point + 1 && (i - point - 1) % 3 == 0) text += ' ';
    text += plain[i];
  }
  return text;
}

void draw_inspector(Ui& ui, const StageInput& in, const StageState& state, InspectorState& inspector, HeadsState& heads,
                    ActionQueue&) {
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  InspectorWriter w(ui, in);
  const bool sorts = in.session.view.tab == Tab::kHeads && in.computed.trace.shapes.heads > 1;
  const auto cell = focus_cell(state);
  look_at(in, cell, inspector);
  const std::optional<Explanation>& e = inspector.explanation;
  if (sorts) write_sort(w, heads);
  if (sorts) w.space(18);
  if (!e) {
    write_empty(w, in);
  } else {
    w.caps(cell_heading(e->id, e->row, e->col, in.computed.session, in.tokens));
    w.big(big_value(*e, w.decimals()));
    w.paragraph(cell_sentence(*e, in.computed.session, in.tokens));
    write_lens(w, in, *cell);
    write_parts(w, in, *e, inspector.weights);
    write_precision(w, *e);
  }
  ImGui::Dummy({1, 24});
  ImGui::PopStyleVar();
}

}  // namespace qkv
