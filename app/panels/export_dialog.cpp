#include "app/panels/export_dialog.h"

#include <cmath>

#include "app/engine/pending.h"
#include "app/panels/lens.h"
#include "app/panels/modal.h"
#include "app/panels/save_arrays.h"
#include "app/ui/keys.h"
#include "core/base/utf8.h"
#include "core/figure/figure_compare.h"

namespace qkv {
namespace {

std::vector<MatrixKind> kinds_of(const Trace& trace) {
  std::vector<MatrixKind> kinds;
  for (const MatrixKind kind : kAllMatrixKinds)
    if (trace.find({kind, 0}) != nullptr) kinds.push_back(kind);
  return kinds;
}

// The lens that is on, where what it shows is of the trace.
const LensResult* current_lens(const StageInput& in) {
  return in.lens != nullptr && in.lens->request.of.get() == &in.computed ? in.lens : nullptr;
}

void update_size(Ui& ui, const PictureSource& of, ExportState& state) {
  const auto key = [](const FigureSpec& s) {
    return std::tuple(s.view, s.matrix.kind, s.matrix.head, s.cell_px, s.theme, s.transparent);
  };
  if (state.sized_version == of.stage.version && key(state.sized) == key(state.spec) &&
      state.sized_compared == state.compared && state.sized_format == state.format && state.sized_scale == state.scale)
    return;
  state.spec.pixels_per_unit = pixels_per_unit(state.format, state.scale);
  state.sized = state.spec;
  state.sized_compared = state.compared;
  state.sized_format = state.format;
  state.sized_scale = state.scale;
  state.sized_version = of.stage.version;
  const Result<Figure> figure = layout_picture(of, {state.spec, state.compared}, ui.labels->shaper());
  state.size_text = figure ? picture_size(figure.value(), state.format, state.scale) : figure.error().message;
  if (figure && !state.compared && current_lens(of.stage) != nullptr)
    state.size_text += ", through the lens: " + lens_line(of.stage);
}

// The name that a picture is offered to be saved as.
std::string offered_name(const std::string& title, const ExportState& state) {
  if (!state.compared) return export_file_name(title, state.spec, state.format);
  return file_stem(title) + "-compare" + std::string(extension_of(state.format));
}

// Which view, or the comparison. True when another was chosen.
bool draw_view(Ui& ui, const PictureSource& of, ExportState& state) {
  std::vector<Choice> views = {{"One matrix"}, {"One head, every step"}, {"All heads"}, {"Concat · Wᴼ"}};
  if (is_weights_only(of.stage.computed.trace.problem.source)) views = {{"One matrix"}, {"One head"}, {"All heads"}};
  const int comparison = static_cast<int>(views.size());
  if (of.comparison != nullptr) views.push_back({"The comparison"});
  const int current = state.compared ? comparison : static_cast<int>(state.spec.view);
  const auto picked = choice_field(ui, "export/view", labelled_row(ui, "picture of", 200, 30), views, current);
  if (!picked || *picked == current) return false;
  state.compared = *picked == comparison;
  if (!state.compared) state.spec.view = static_cast<FigureView>(*picked);
  return true;
}

void draw_what(Ui& ui, const PictureSource& of, ExportState& state) {
  const StageInput& in = of.stage;
  if (draw_view(ui, of, state)) {
    const std::filesystem::path path = state.path.edit.text;
    state.path.edit.set((path.parent_path() / offered_name(in.session.title, state)).string());
  }
  gap(8);
  if (state.compared) return;
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
}

// The path with the end of its name for `format`, in place of that of another.
std::string with_extension(const std::string& text, PictureFormat format) {
  std::filesystem::path path = text;
  if (!path.has_filename()) return text;
  if (path.has_extension() && picture_format(path)) path.replace_extension();
  return path.string() + std::string(extension_of(format));
}

// The format that the name asks for, where it names one.
void follow_name(ExportState& state) {
  const std::filesystem::path path = state.path.edit.text;
  if (path.has_extension()) state.format = picture_format(path).value_or(state.format);
}

// Where to write; nullopt, with the reason in the dialog, for a name of something else.
std::optional<std::filesystem::path> confirmed_path(ExportState& state) {
  const std::filesystem::path path = state.path.edit.text;
  if (path.empty()) return std::nullopt;
  if (!path.has_extension()) return with_extension(path.string(), state.format);
  if (picture_format(path)) return path;
  state.problem = "Pictures are PNG, SVG or PDF: let the name end in .png, .svg or .pdf";
  return std::nullopt;
}

void draw_format(Ui& ui, ExportState& state) {
  static constexpr Choice kFormats[] = {{"PNG", "pixels"}, {"SVG", "shapes and text"}, {"PDF", "shapes and text"}};
  if (const auto picked = choice_field(ui, "export/format", labelled_row(ui, "format", 200, 30), kFormats,
                                       static_cast<int>(state.format))) {
    state.format = static_cast<PictureFormat>(*picked);
    state.path.edit.set(with_extension(state.path.edit.text, state.format));
    state.problem.clear();
  }
  gap(8);
  if (const auto scale = number_field(ui, "export/scale", labelled_row(ui, "scale", 88, 30), state.scale,
                                      {kLeastPictureScale, kMostPictureScale, 0.1, false}, state.entry))
    state.scale = *scale;
  gap(12);
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
  gap(8);
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

std::string export_file_name(const std::string& title, const FigureSpec& spec, PictureFormat format) {
  const char* part = spec.view == FigureView::kHead ? "head" : spec.view == FigureView::kHeads ? "heads" : "concat";
  return file_stem(title) + "-" + (spec.view == FigureView::kMatrix ? std::string(file_key(spec.matrix.kind)) : part) +
         std::string(extension_of(format));
}

Result<Figure> layout_picture(const PictureSource& of, const PictureSpec& spec, const TextShaper& shaper) {
  if (spec.compared && of.comparison == nullptr) return bad_input("There is no comparison any more");
  if (!spec.compared) {
    const Computed& computed = of.stage.computed;
    if (is_pending(computed)) return bad_input(why_missing(of.stage));
    return layout_figure(computed.session, computed.trace, spec.figure, shaper, current_lens(of.stage));
  }
  const CompareResult& result = *of.comparison;
  const auto head = static_cast<std::size_t>(of.shown.head);
  return layout_comparison(
      {result.session, result.comparison, of.shown.array, of.shown.head, result.ours[of.shown.array][head],
       result.theirs[of.shown.array][head], result.other.filename().string()},
      spec.figure, shaper);
}

void open_export_dialog(ExportState& state, const PictureSource& of, const StageState& stage, ThemeName theme,
                        const std::filesystem::path& folder) {
  const StageInput& in = of.stage;
  const ExportState::Saved last = state.last;
  state = ExportState{};
  state.last = last;
  state.format = last.format;
  state.scale = last.scale;
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
  if (of.comparison != nullptr) {
    const Matrix& shown = of.comparison->ours[of.shown.array][static_cast<std::size_t>(of.shown.head)];
    state.compared = true;
    state.spec.view = FigureView::kMatrix;
    state.spec.cell_px = compared_cell_px(shown.rows(), shown.cols());
  }
  state.path.edit.set((folder / offered_name(in.session.title, state)).string());
}

std::optional<ExportRequest> draw_export_dialog(Ui& ui, const PictureSource& of, ExportState& state) {
  const bool fresh = state.just_opened;
  if (!begin_modal(ui, "export-dialog", "Export picture", {520, 506}, state.open, state.just_opened))
    return std::nullopt;
  if (fresh) {
    state.path.edit.select_all();
    focus_text_field(ui, "export/path", state.path);
  }
  follow_name(state);
  draw_what(ui, of, state);
  draw_how(ui, state);
  draw_format(ui, state);
  update_size(ui, of, state);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const TextFieldResult typed = text_field(ui, "export/path", at, {at.x + width - 96, at.y + 34}, state.path,
                                           {"path of the file", 13, TextAlign::kLeft, true});
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
  if (typed.changed) state.problem.clear();
  std::optional<ExportRequest> request;
  const int button = modal_buttons(ui, "export", "Export");
  if (button == 1 || typed.entered) {
    follow_name(state);
    if (const auto to = confirmed_path(state)) {
      state.spec.pixels_per_unit = pixels_per_unit(state.format, state.scale);
      request = ExportRequest{{state.spec, state.compared}, state.format, state.scale, *to};
    }
  }
  if (button == 2 || typed.cancelled || (ui.keyboard_is_free() && take_escape(ui))) state.open = false;
  end_modal(state.open);
  return request;
}

}  // namespace qkv
