#include "app/panels/head_tab.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "app/panels/color_bar.h"
#include "app/panels/fit.h"
#include "app/panels/lens.h"
#include "core/attention/formula.h"
#include "core/base/number_text.h"

namespace qkv {
namespace {

constexpr float kMargin = 16;
constexpr float kGap = 32;  // between factors and products, with an operator in it
constexpr float kTitleRoom = 26;
constexpr float kBarRoom = 64;  // colour bars below

// Matrices in the row of S that have the keys' width: S, what is added, scaled, mask, A.
int products_of(const HeadLayoutInput& in) { return 3 + in.mask + in.alibi + in.bias; }

struct Extents {
  float dk_w, keys_w, dv_w;       // horizontal
  float dk_h, keys_h, queries_h;  // vertical
};

Extents fit_extents(const HeadLayoutInput& in, float room_w, float room_h) {
  const Shapes& s = in.shapes;
  std::vector<Index> across(static_cast<std::size_t>(products_of(in)), s.nk);
  across.push_back(s.d_k);
  across.push_back(s.d_v);
  const Index top = std::max(s.d_k, s.nk);
  const std::array down = {top, s.nq};
  AxisFit w = fit_axes(across, room_w), h = fit_axes(down, room_h);
  square_cells(w, h);
  return {w.length(s.d_k), w.length(s.nk), w.length(s.d_v), h.length(s.d_k), h.length(s.nk), h.length(s.nq)};
}

// What happens between two matrices: signs, with their numbers small below them.
struct StepLine {
  std::string text;
  bool is_sign = true;
};

void draw_step(Ui& ui, const MatrixPlace& from, const MatrixPlace& to, const std::vector<StepLine>& lines) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float x0 = from.min.x + from.size.x, x1 = to.min.x;
  constexpr float kSign = 18, kWord = 16;
  float height = 0;
  for (const StepLine& line : lines) height += line.is_sign ? kSign : kWord;
  float y = std::floor(from.min.y + std::min(from.size.y, to.size.y) / 2 - height / 2);
  for (const StepLine& line : lines) {
    const float below = y + (line.is_sign ? kSign : kWord);
    draw_text_in(ui, list, line.is_sign ? FontRole::kText14 : FontRole::kSmall11, {x0, y}, {x1, below},
                 line.is_sign ? ui.colors().dim : ui.colors().faint, line.text, TextAlign::kCenter);
    y = below;
  }
}

// From the raw scores to what stands behind them: the factor, the cap, and "+" where something is added.
std::vector<StepLine> scaling_lines(const StageInput& in, bool adds) {
  const AttentionOptions& options = in.computed.session.problem.options;
  std::vector<StepLine> lines;
  lines.push_back({options.scale ? "×" : "÷"});
  lines.push_back(
      {options.scale ? factor_text(*options.scale) : "√" + std::to_string(in.computed.trace.shapes.d_k), false});
  if (options.softcap) lines.push_back({"cap " + factor_text(*options.softcap), false});
  if (adds) lines.push_back({"+"});
  return lines;
}

void draw_steps(Ui& ui, const StageInput& in, const HeadLayout& layout, const HeadLayoutInput& input) {
  const bool adds = input.alibi || input.bias;
  const MatrixPlace& first = input.alibi ? layout.alibi : layout.bias;
  draw_step(ui, layout.scores, adds ? first : layout.scaled, scaling_lines(in, adds));
  if (input.alibi && input.bias) draw_step(ui, layout.alibi, layout.bias, {{"+"}});
  if (adds) draw_step(ui, input.bias ? layout.bias : layout.alibi, layout.scaled, {{"="}});
  if (input.mask) draw_step(ui, layout.scaled, layout.keep, {{"→"}});
  draw_step(ui, input.mask ? layout.keep : layout.scaled, layout.attn, {{"→"}});
}

std::vector<MatrixPlace*> places(HeadLayout& layout, const HeadLayoutInput& input) {
  std::vector<MatrixPlace*> all = {&layout.q, &layout.k, &layout.v, &layout.scores, &layout.scaled};
  if (input.alibi) all.push_back(&layout.alibi);
  if (input.bias) all.push_back(&layout.bias);
  if (input.mask) all.push_back(&layout.keep);
  all.push_back(&layout.attn);
  all.push_back(&layout.out);
  return all;
}

struct FixedRoom {
  float left_labels, scale_gap, out_gap, width;
  int products;
};

// What the tab needs across besides its cells.
FixedRoom fixed_room(const HeadLayoutInput& in) {
  const float left_labels = in.query_labels + 8, v_labels = in.key_labels + 8;
  const float out_gap = std::max(kGap, v_labels + 20);
  const int products = products_of(in);
  const float scale_gap = std::max(kGap, in.scale_gap);
  const float gaps = kGap * static_cast<float>(products - 1) + scale_gap + out_gap;
  return {left_labels, scale_gap, out_gap, 2 * kMargin + left_labels + gaps, products};
}

}  // namespace

float readable_width(const HeadLayoutInput& in) {
  // Cells of 28 pixels hold a number of few digits: enough to edit a bias where full ones would take too much room.
  constexpr float kLeastCell = 27, kReadableCell = 38, kMostCells = 700, kTightCell = 28, kMostTight = 1000;
  const FixedRoom fixed = fixed_room(in);
  const auto columns = static_cast<float>(in.shapes.d_k + in.shapes.d_v + in.shapes.nk * fixed.products);
  if (in.max.x - in.min.x >= fixed.width + columns * kLeastCell) return 0;
  if (columns * kReadableCell <= kMostCells) return fixed.width + columns * kReadableCell;
  if (in.bias && columns * kTightCell <= kMostTight) return fixed.width + columns * kTightCell;
  // However many cells: a matrix is not drawn narrower than its title.
  constexpr float kTitleWidth = 72;
  const float least = fixed.width + kTitleWidth * static_cast<float>(fixed.products + 2);
  return columns * kLeastCell > least - fixed.width && in.max.x - in.min.x < least ? least : 0;
}

HeadLayout layout_head(const HeadLayoutInput& in) {
  const Shapes& s = in.shapes;
  const auto [left_labels, scale_gap, out_gap, fixed_w, products] = fixed_room(in);
  const float fixed_h = 2 * kTitleRoom + in.key_label_height + kGap - 8 + kBarRoom + kMargin;
  const float stage_w = in.max.x - in.min.x, stage_h = in.max.y - in.min.y;
  const Extents e = fit_extents(in, stage_w - fixed_w, stage_h - fixed_h);
  const float top_h = std::max(e.dk_h, e.keys_h);
  const float used_w = fixed_w - 2 * kMargin + e.dk_w + e.keys_w * static_cast<float>(products) + e.dv_w;
  const float used_h = fixed_h - kMargin + top_h + e.queries_h;
  const float x0 = in.min.x + std::max(kMargin, (stage_w - used_w) / 2) + left_labels;
  const float y_top = in.min.y + std::max(8.0f, (stage_h - used_h) / 2) + kTitleRoom + in.key_label_height;
  const float y_mid = y_top + top_h + kGap - 8 + kTitleRoom;

  HeadLayout layout;
  layout.cell = e.keys_w / static_cast<float>(s.nk);
  const int kv = kv_head_of(s, in.head);
  float x = x0;
  layout.q = place_at({MatrixKind::kQ, in.head}, Axis::kQueries, Axis::kDk, {x, y_mid}, {e.dk_w, e.queries_h}, "Q",
                      shape_words(s.nq, s.d_k));
  x += e.dk_w + kGap;
  layout.k = place_at({MatrixKind::kK, kv}, Axis::kDk, Axis::kKeys, {x, y_top + top_h - e.dk_h}, {e.keys_w, e.dk_h},
                      "Kᵀ", shape_words(s.d_k, s.nk));
  layout.k.transposed = true;
  layout.scores = place_at({MatrixKind::kScores, in.head}, Axis::kQueries, Axis::kKeys, {x, y_mid},
                           {e.keys_w, e.queries_h}, "S", shape_words(s.nq, s.nk));
  x += e.keys_w + scale_gap;
  if (in.alibi) {
    layout.alibi = place_at({MatrixKind::kAlibi, in.head}, Axis::kQueries, Axis::kKeys, {x, y_mid},
                            {e.keys_w, e.queries_h}, "ALiBi", "");
    x += e.keys_w + kGap;
  }
  if (in.bias) {
    layout.bias =
        place_at({MatrixKind::kBias, 0}, Axis::kQueries, Axis::kKeys, {x, y_mid}, {e.keys_w, e.queries_h}, "B", "");
    x += e.keys_w + kGap;
  }
  layout.scaled = place_at({MatrixKind::kScaled, in.head}, Axis::kQueries, Axis::kKeys, {x, y_mid},
                           {e.keys_w, e.queries_h}, "scaled", "");
  x += e.keys_w + kGap;
  if (in.mask) {
    layout.keep =
        place_at({MatrixKind::kKeep, 0}, Axis::kQueries, Axis::kKeys, {x, y_mid}, {e.keys_w, e.queries_h}, "mask", "");
    layout.keep.numbers = false;
    x += e.keys_w + kGap;
  }
  layout.attn = place_at({MatrixKind::kAttn, in.head}, Axis::kQueries, Axis::kKeys, {x, y_mid}, {e.keys_w, e.queries_h},
                         "A = softmax", "");
  x += e.keys_w + out_gap;
  layout.v = place_at({MatrixKind::kV, kv}, Axis::kKeys, Axis::kDv, {x, y_top + top_h - e.keys_h}, {e.dv_w, e.keys_h},
                      "V", shape_words(s.nk, s.d_v));
  layout.out = place_at({MatrixKind::kHeadsOut, in.head}, Axis::kQueries, Axis::kDv, {x, y_mid}, {e.dv_w, e.queries_h},
                        "O = A V", shape_words(s.nq, s.d_v));
  layout.q.row_labels = true;
  layout.q.label_room = in.query_labels;
  layout.k.col_labels = true;
  layout.k.top_room = in.key_label_height;
  layout.v.row_labels = true;
  layout.v.label_room = in.key_labels;
  layout.bars = {layout.q.min.x, y_mid + std::floor(e.queries_h) + 34};
  return layout;
}

void draw_color_bars(Ui& ui, const StageInput& in, const StageState& state, ImVec2 at,
                     std::initializer_list<ScaleGroup> groups) {
  const auto focus = focus_cell(state);
  for (const ScaleGroup group : groups) {
    struct Named {
      ScaleGroup group;
      MatrixKind kind;
      const char* text;
    };
    static constexpr Named kNames[] = {{ScaleGroup::kWeights, MatrixKind::kAttn, "weights A"},
                                       {ScaleGroup::kScores, MatrixKind::kScores, "scores"},
                                       {ScaleGroup::kValues, MatrixKind::kV, "Q, K, V, O"},
                                       {ScaleGroup::kInput, MatrixKind::kX, "X"},
                                       {ScaleGroup::kProjection, MatrixKind::kWq, "weights W"},
                                       {ScaleGroup::kConcat, MatrixKind::kConcat, "Concat"},
                                       {ScaleGroup::kWo, MatrixKind::kWo, "Wᴼ"},
                                       {ScaleGroup::kOut, MatrixKind::kOut, "output"}};
    const auto* named =
        std::find_if(std::begin(kNames), std::end(kNames), [&](const Named& n) { return n.group == group; });
    const MatrixId id{named->kind, 0};
    // The ends of a scale of which no value is known yet would say something about them.
    const bool is_known = !in.computed.digest.refining || shown_extent(in, id).count > 0;
    const ImVec2 bar = at;
    at.x += 144 + 32;
    if (!is_known) continue;
    const std::string name = lens_bar_name(in, id, named->text);
    std::optional<float> mark;
    if (focus && scale_group(focus->id.kind) == group)
      if (const ShownCells cells = displayed_cells(in, focus->id); focus->row < cells.rows && focus->col < cells.cols)
        mark = cells.at(focus->row, focus->col);
    draw_text(ui, ImGui::GetWindowDrawList(), FontRole::kSmall11, {bar.x, bar.y - 22}, ui.colors().dim, name);
    draw_bar(ui, bar, 144, {shown_colormap(in, id), shown_range(in, id), mark, lens_bar_factor(in, id)},
             in.session.view.decimals);
  }
}

namespace {

// One matrix over the whole stage, in its own proportions, with labels on both sides.
void draw_enlarged(Ui& ui, const StageInput& in, StageState& state, MatrixId id, ImVec2 min, ImVec2 max,
                   ActionQueue& queue) {
  const ShownCells values = shown_cells(in, id);
  const Axis rows = row_axis(id.kind), cols = col_axis(id.kind);
  const auto is_token = [](Axis axis) { return axis == Axis::kQueries || axis == Axis::kKeys; };
  MatrixPlace place = place_at(id, rows, cols, min, {1, 1}, std::string(symbol(id.kind)),
                               std::string(long_name(id.kind)) + " · " + shape_words(values.rows, values.cols));
  place.row_labels = is_token(rows);
  place.col_labels = is_token(cols);
  const float labels = place.row_labels ? row_label_room(ui, shown_names(in, rows, values.rows)) + 8 : 0;
  const float room_w = max.x - min.x - labels - 2 * kMargin;
  float above = 0, room_h = 0, w = 0, h = 0;
  const auto fit = [&](float label_height) {
    constexpr double kMostCell = 128;
    above = label_height;
    room_h = max.y - min.y - kTitleRoom - above - kBarRoom - kMargin;
    const CellSize cell = fit_cells(values.rows, values.cols, room_w, room_h, kMostCell);
    w = static_cast<float>(cell.w * static_cast<double>(values.cols));
    h = static_cast<float>(cell.h * static_cast<double>(values.rows));
  };
  fit(place.col_labels ? 22 : 0);
  if (place.col_labels) {
    const auto names = shown_names(in, cols, values.cols);
    fit(col_label_room(ui, names, w / static_cast<float>(values.cols)));
  }
  place.min = {std::floor((min.x + max.x - w + labels) / 2),
               std::floor(min.y + kTitleRoom + above + std::max(0.0f, (room_h - h) / 2))};
  place.size = {std::max(1.0f, std::floor(w)), std::max(1.0f, std::floor(h))};
  place.label_room = labels - 8;
  place.top_room = above;
  draw_matrix(ui, in, state, place, queue);
  if (id.kind != MatrixKind::kKeep)
    draw_color_bars(ui, in, state, {place.min.x, place.min.y + place.size.y + 34}, {scale_group(id.kind)});
}

// Titles say what acts, as far as they fit before the next matrix.
void name_scores(Ui& ui, const AttentionOptions& options, HeadLayout& layout) {
  const auto set_if_fits = [&](MatrixPlace& place, std::string title) {
    if (formula_width(ui, FontRole::kBold13, title) <= place.size.x + kGap - 8) place.title = std::move(title);
  };
  set_if_fits(layout.scores, "S = " + scores_formula(options));
  set_if_fits(layout.scaled, scaled_formula(options));
}

}  // namespace

void draw_head_tab(Ui& ui, const StageInput& in, StageState& state, ImVec2 min, ImVec2 max, ActionQueue& queue) {
  const Trace& trace = in.computed.trace;
  if (is_weights_only(trace.problem.source)) {
    const int head = std::clamp(in.session.view.head, 0, trace.shapes.heads - 1);
    return draw_enlarged(ui, in, state, {MatrixKind::kAttn, head}, min, max, queue);
  }
  if (state.enlarged) {
    const int head = std::clamp(in.session.view.head, 0, trace.shapes.heads - 1);
    const bool kv = *state.enlarged == MatrixKind::kK || *state.enlarged == MatrixKind::kV;
    const MatrixId id{*state.enlarged, kv ? kv_head_of(trace.shapes, head) : is_per_head(*state.enlarged) ? head : 0};
    if (shown_cells(in, id)) return draw_enlarged(ui, in, state, id, min, max, queue);
    state.enlarged.reset();
  }
  const auto queries = shown_names(in, Axis::kQueries, trace.shapes.nq);
  const auto keys = shown_names(in, Axis::kKeys, trace.shapes.nk);
  HeadLayoutInput input{min,
                        max,
                        trace.shapes,
                        std::clamp(in.session.view.head, 0, trace.shapes.heads - 1),
                        in.computed.digest.hidden > 0,
                        !trace.alibi.empty(),
                        trace.problem.options.bias.has_value(),
                        row_label_room(ui, queries),
                        row_label_room(ui, keys),
                        22};
  for (const StepLine& line : scaling_lines(in, false))
    input.scale_gap = std::max(input.scale_gap, std::ceil(text_width(ui, FontRole::kSmall11, line.text) / 4) * 4 + 8);
  // A small session keeps readable cells in a narrow window: the stage scrolls sideways then.
  const float readable = readable_width(input);
  const bool scrolls = readable > max.x - min.x;
  if (scrolls) {
    ImGui::SetCursorScreenPos(min);
    ImGui::BeginChild(
        "head-scroll", {max.x - min.x, max.y - min.y}, false,
        ImGuiWindowFlags_HorizontalScrollbar | ImGuiWindowFlags_NoScrollWithMouse | ImGuiWindowFlags_NoNav);
    input.min = ImGui::GetCursorScreenPos();
    input.max = {input.min.x + readable, max.y - 12};
  }
  HeadLayout layout = layout_head(input);
  const float room = col_label_room(ui, keys, static_cast<float>(layout.cell));
  if (room != input.key_label_height) {
    input.key_label_height = room;
    layout = layout_head(input);
  }
  if (trace.shapes.kv_heads != trace.shapes.heads)
    layout.k.subtitle = layout.v.subtitle =
        "key/value head " + std::to_string(kv_head_of(trace.shapes, input.head) + 1);
  name_scores(ui, in.computed.session.problem.options, layout);
  if (!in.computed.digest.refining && in.computed.digest.worst_row_sum <= 1e-5 &&
      in.computed.digest.warnings.dead_rows == 0)
    layout.attn.subtitle = in.computed.session.problem.options.sink.empty() ? "rows sum to 1" : "rows + sink sum to 1";
  for (const MatrixPlace* place : places(layout, input)) draw_matrix(ui, in, state, *place, queue);
  draw_steps(ui, in, layout, input);
  draw_color_bars(ui, in, state, layout.bars, {ScaleGroup::kValues, ScaleGroup::kScores, ScaleGroup::kWeights});
  if (scrolls) {
    ImGui::SetCursorScreenPos({input.max.x - 1, input.min.y});
    ImGui::Dummy({1, 1});
    ImGui::EndChild();
  }
}

}  // namespace qkv
