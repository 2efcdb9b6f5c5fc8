#include "app/panels/export_dialog.h"

#include <cmath>

#include "app/panels/modal.h"
#include "app/ui/keys.h"
#include "core/base/utf8.h"

namespace qkv {
namespace {

std::vector<MatrixKind> kinds_of(const Trace& trace) {
  std::vector<MatrixKind> kinds;
  for (const MatrixKind kind : kAllMatrixKinds)
    if (trace.find({kind, 0}) != nullptr) kinds.push_back(kind);
  return kinds;
}

void update_size(Ui& ui, const StageInput& in, ExportState& state) {
  const auto key = [](const FigureSpec& s) {
    return std::tuple(s.view, s.matrix.kind, s.matrix.head, s.cell_px, s.theme, s.transparent);
  };
  if (state.sized_version == in.version && key(state.sized) == key(state.spec)) return;
  state.sized = state.spec;
  state.sized_version = in.version;
  const Result<Figure> figure = layout_figure(in.computed.session, in.computed.trace, state.spec, ui.labels->shaper());
  state.size_text = figure ? std::to_string(std::lround(figure.value().width)) + " × " +
                                 std::to_string(std::lround(figure.value().height)) + " pixels"
                           : figure.error().message;
}

void draw_what(Ui& ui, const StageInput& in, ExportState& state) {
  static constexpr Choice kViews[] = {{"One matrix"}, {"One head, every step"}, {"All heads"}, {"Concat · Wᴼ"}};
  const FigureView before = state.spec.view;
  static constexpr Choice kGivenViews[] = {{"One matrix"}, {"One head"}, {"All heads"}};
  const bool given = is_weights_only(in.computed.trace.problem.source);
  const std::span<const Choice> views = given ? std::span<const Choice>(kGivenViews) : kViews;
  if (const auto picked = choice_field(ui, "export/view", labelled_row(ui, "picture of", 200, 30), views,
                                       static_cast<int>(state.spec.view)))
    state.spec.view = static_cast<FigureView>(*picked);
  gap(8);
  if (state.spec.view == FigureView::kMatrix) {
    const std::vector<MatrixKind> kinds = kinds_of(in.computed.trace);
    std::vector<Choice> choices;
    int current = 0;
    for (const MatrixKind kind : kinds) {
      if (kind == state.spec.matrix.kind) current = static_cast<int>(choices.size());
      choices.push_back({symbol(kind), long_name(kind)});
    }
    if (const auto picked = choice_field(ui, "export/matrix", labelled_row(ui, "matrix", 200, 30), choices, current))
      state.spec.matrix.kind = kinds[static_cast<std::size_t>(*picked)];
    gap(8);
  }
  const bool per_head = state.spec.view == FigureView::kHead ||
                        (state.spec.view == FigureView::kMatrix && is_per_head(state.spec.matrix.kind));
  const Shapes& s = in.computed.trace.shapes;
  const bool kv = state.spec.view == FigureView::kMatrix &&
                  (state.spec.matrix.kind == MatrixKind::kK || state.spec.matrix.kind == MatrixKind::kV);
  const int most = kv ? s.kv_heads : s.heads;
  state.spec.matrix.head = std::min(state.spec.matrix.head, most - 1);
  if (per_head && most > 1) {
    if (const auto head = number_field(ui, "export/head", labelled_row(ui, "head", 88, 30), state.spec.matrix.head + 1,
                                       {1, double(most), 1, true}, state.entry))
      state.spec.matrix.head = static_cast<int>(*head) - 1;
    gap(8);
  }
  if (before != state.spec.view) {
    const std::filesystem::path path = state.path.edit.text;
    state.path.edit.set((path.parent_path() / export_file_name(in.session.title, state.spec)).string());
  }
}

void draw_how(Ui& ui, ExportState& state) {
  if (const auto size = number_field(ui, "export/cell", labelled_row(ui, "cell size in pixels", 88, 30),
                                     state.spec.cell_px, {1, 256, 1, true}, state.entry))
    state.spec.cell_px = static_cast<int>(*size);
  gap(8);
  static constexpr Choice kThemes[] = {{"light"}, {"dark"}};
  if (const auto theme = choice_field(ui, "export/theme", labelled_row(ui, "theme", 200, 30), kThemes,
                                      state.spec.theme == ThemeName::kDark ? 1 : 0))
    state.spec.theme = *theme == 1 ? ThemeName::kDark : ThemeName::kLight;
  gap(8);
  if (switch_field(ui, "export/transparent", labelled_row(ui, "transparent background", 40, 30),
                   state.spec.transparent))
    state.spec.transparent = !state.spec.transparent;
  gap(12);
}

}  // namespace

std::string file_stem(const std::string& title) {
  std::string name;
  std::size_t at = 0;
  while (at < title.size()) {
    const char32_t c = next_code_point(title, at);
    if (c == U'/' || c == U'\\' || c < 32 || is_white_space(c) || c == U'.' || c == U':') {
      if (!name.empty() && name.back() != '-') name += '-';
    } else {
      append_utf8(name, c < 128 && c >= U'A' && c <= U'Z' ? c + 32 : c);
    }
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name.empty() ? "attention" : name;
}

std::string export_file_name(const std::string& title, const FigureSpec& spec) {
  const char* part = spec.view == FigureView::kHead ? "head" : spec.view == FigureView::kHeads ? "heads" : "concat";
  return file_stem(title) + "-" + (spec.view == FigureView::kMatrix ? std::string(file_key(spec.matrix.kind)) : part) +
         ".png";
}

void open_export_dialog(ExportState& state, const StageInput& in, const StageState& stage, ThemeName theme,
                        const std::filesystem::path& folder) {
  state = ExportState{};
  state.open = state.just_opened = true;
  const auto cell = focus_cell(stage);
  state.spec.matrix = cell ? cell->id : MatrixId{MatrixKind::kAttn, in.session.view.head};
  const Tab tab = in.session.view.tab;
  state.spec.view = cell                  ? FigureView::kMatrix
                    : tab == Tab::kHeads  ? FigureView::kHeads
                    : tab == Tab::kConcat ? FigureView::kConcat
                                          : FigureView::kHead;
  state.spec.theme = theme;
  state.spec.look = in.session.view;
  state.path.edit.set((folder / export_file_name(in.session.title, state.spec)).string());
}

std::optional<ExportRequest> draw_export_dialog(Ui& ui, const StageInput& in, ExportState& state) {
  const bool fresh = state.just_opened;
  if (!begin_modal(ui, "export-dialog", "Export picture", {520, 430}, state.open, state.just_opened))
    return std::nullopt;
  if (fresh) {
    state.path.edit.select_all();
    focus_text_field(ui, "export/path", state.path);
  }
  draw_what(ui, in, state);
  draw_how(ui, state);
  update_size(ui, in, state);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const TextFieldResult typed = text_field(ui, "export/path", at, {at.x + width - 96, at.y + 34}, state.path,
                                           {"path of the PNG file", 13, TextAlign::kLeft, true});
  if (text_button(ui, "export/browse", {{at.x + width - 88, at.y}, {at.x + width, at.y + 34}}, "Browse…")) {
    state.browse = true;
    state.open = false;
  }
  ImGui::SetCursorScreenPos({at.x, at.y + 42});
  const bool failed = !state.problem.empty();
  const float used =
      draw_label_paragraph(ui, ImGui::GetWindowDrawList(), ImGui::GetCursorScreenPos(), width,
                           failed ? state.problem : state.size_text, 13, failed ? ui.colors().bad : ui.colors().dim);
  ImGui::Dummy({width, used});
  std::optional<ExportRequest> request;
  const int button = modal_buttons(ui, "export", "Export");
  if ((button == 1 || typed.entered) && !state.path.edit.text.empty())
    request = ExportRequest{state.spec, state.path.edit.text};
  if (button == 2 || typed.cancelled || (ui.keyboard_is_free() && take_escape(ui))) state.open = false;
  end_modal(state.open);
  return request;
}

}  // namespace qkv
