#include "app/panels/compare_tab.h"

#include <algorithm>
#include <cmath>

#include "app/engine/pending.h"
#include "app/panels/color_bar.h"
#include "app/panels/compare_names.h"
#include "app/panels/compare_summary.h"
#include "app/panels/fit.h"
#include "app/panels/matrix_view.h"
#include "core/figure/figure_compare.h"
#include "core/session/compare_words.h"

namespace qkv {
namespace {

constexpr float kMargin = 24, kGap = 28, kPill = 26, kTitle = 26, kWords = 236, kFewWords = 96;
constexpr float kBar = 144, kLeastBar = 88, kBarGap = 16, kBarRoom = kBarGap + kColorBarHeight;
constexpr float kLeastRest = 330;  // of the matrices and the words, below the fields for arrays
constexpr double kMostCell = 64;
constexpr double kNumberCell = 30;  // in narrower cells the difference is not written in units

// A small button in a row of its like. True when clicked; moves `x`.
bool pill(Ui& ui, const std::string& name, const std::string& text, bool chosen, bool wrong, float& x, float y) {
  const float width = text_width(ui, FontRole::kText13, text) + (wrong ? 34.0f : 22.0f);
  const ImVec2 min{x, y}, max{x + width, y + kPill};
  ImGui::SetCursorScreenPos(min);
  const bool clicked = ImGui::InvisibleButton(name.c_str(), {width, kPill});
  ui.widgets->add(name, min, max);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Palette& colors = ui.colors();
  if (chosen || ImGui::IsItemHovered()) list->AddRectFilled(min, max, to_u32(colors.accent_soft), 6);
  list->AddRect(min, max, to_u32(chosen ? colors.accent : colors.line), 6);
  if (wrong) list->AddCircleFilled({min.x + 13, (min.y + max.y) / 2}, 3.5f, to_u32(colors.bad), 16);
  draw_text_in(ui, list, FontRole::kText13, {min.x + (wrong ? 22.0f : 11.0f), min.y}, max,
               chosen ? colors.text : colors.dim, text, TextAlign::kLeft);
  x += width + 8;
  return clicked;
}

// Breaks a row of pills where the next would stand out.
void wrap(float& x, float& y, float left, float right, float next) {
  if (x + next <= right || x == left) return;
  x = left;
  y += kPill + 6;
}

// Which matrix, and which of its heads. Returns the height used.
float draw_choices(Ui& ui, const CompareResult& result, const ShownComparison& shown, CompareState& compare, ImVec2 at,
                   float width) {
  const std::vector<Difference>& all = result.comparison.differences;
  float x = at.x, y = at.y;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string text(file_key(all[i].kind));
    wrap(x, y, at.x, at.x + width, text_width(ui, FontRole::kText13, text) + 34);
    if (pill(ui, "compare/matrix/" + text, text, i == shown.array, !all[i].equal(), x, y)) {
      compare.matrix = all[i].kind;
    }
  }
  const Difference& difference = all[shown.array];
  if (difference.errors.size() > 1) {
    x = at.x;
    y += kPill + 8;
    for (std::size_t head = 0; head < difference.errors.size(); ++head) {
      const std::string text = "head " + std::to_string(head + 1);
      const bool chosen = static_cast<int>(head) == shown.head;
      wrap(x, y, at.x, at.x + width, text_width(ui, FontRole::kText13, text) + 34);
      if (pill(ui, "compare/head/" + std::to_string(head + 1), text, chosen, difference.wrong_by_head[head] > 0, x,
               y)) {
        compare.head = static_cast<int>(head);
      }
    }
  }
  return y + kPill - at.y;
}

struct Three {
  ForeignMatrix ours, theirs, difference;
  int power = 0;                                  // of the difference: its numbers are written in units of 10^power
  bool has_values = true, has_difference = true;  // finite ones
};

const ComparedExtents& extents_of(CompareState& compare, const ShownComparison& shown) {
  const CompareResult& result = *compare.result;
  std::optional<ShownExtents>& known = compare.extents;
  if (!known || known->version != result.version || known->array != shown.array || known->head != shown.head) {
    const auto head = static_cast<std::size_t>(shown.head);
    known = {result.version, shown.array, shown.head,
             compared_extents(result.ours[shown.array][head], result.theirs[shown.array][head],
                              result.comparison.differences[shown.array].errors[head])};
  }
  return known->extents;
}

Three three(const StageInput& in, CompareState& compare, const ShownComparison& shown) {
  const CompareResult& result = *compare.result;
  const auto head = static_cast<std::size_t>(shown.head);
  const Difference& found = result.comparison.differences[shown.array];
  const Matrix& ours = result.ours[shown.array][head];
  const Matrix& theirs = result.theirs[shown.array][head];
  const Matrix& errors = found.errors[head];
  const ComparedLook look = compared_look(in.session.view, found.kind, extents_of(compare, shown));
  const std::uint64_t key = shown.array * 4096 + head * 4, version = result.version;
  return {
      {&ours, look.colormap, look.range, key, version, "ours"},
      {&theirs, look.colormap, look.range, key + 1, version, "theirs"},
      {&errors, look.difference_map, look.difference_range, key + 2, version, "difference", unit_factor(look.power)},
      look.power,
      look.has_values,
      look.has_difference};
}

// What the colours of one mean, below it.
void draw_bar_below(Ui& ui, const ForeignMatrix& matrix, bool has_values, ImVec2 at, float width,
                    const std::optional<float>& value, int decimals) {
  if (!has_values) {
    draw_text(ui, ImGui::GetWindowDrawList(), FontRole::kSmall11, at, ui.colors().dim, "no finite value");
    return;
  }
  draw_bar(ui, at, width, {matrix.colormap, matrix.range, value, matrix.factor}, decimals);
}

// The three side by side. Returns where they end.
float draw_three(Ui& ui, const StageInput& in, StageState& state, Three matrices, const MatrixId& id, ImVec2 min,
                 ImVec2 max, ActionQueue& queue) {
  const Index rows = matrices.ours.values->rows(), cols = matrices.ours.values->cols();
  const Axis row = row_axis(id.kind), col = col_axis(id.kind);
  const float labels = row_label_room(ui, shown_names(in, row, rows), 96) + 8;
  const float room_w = (max.x - min.x - labels - 2 * kGap) / 3;
  const AxisNames col_names = shown_names(in, col, cols);
  // Labels stand above the cells, whose size they leave room for.
  CellSize cell;
  float key_labels = 22, top = 0;
  for (int pass = 0; pass < 2; ++pass) {
    top = min.y + kTitle + key_labels;
    cell = fit_cells(rows, cols, room_w, std::max(60.0f, max.y - top - kBarRoom), kMostCell);
    key_labels = col_label_room(ui, col_names, static_cast<float>(cell.w), 72);
  }
  top = min.y + kTitle + key_labels;
  // Without their unit they would all be 0.
  const bool has_numbers = cell.w >= kNumberCell || matrices.power == 0;
  if (!has_numbers) {
    matrices.power = 0;
    matrices.difference.factor = 1;
  }
  const ImVec2 size{static_cast<float>(cell.w * static_cast<double>(cols)),
                    static_cast<float>(cell.h * static_cast<double>(rows))};
  const std::string largest = error_text(std::max(std::abs(static_cast<double>(matrices.difference.range.low)),
                                                  std::abs(static_cast<double>(matrices.difference.range.high))));
  const std::pair<const ForeignMatrix*, std::string> places[] = {
      {&matrices.ours, "Ours"},
      {&matrices.theirs, "Theirs"},
      {&matrices.difference, "Theirs − ours" + unit_words(matrices.power)}};
  float x = min.x + labels;
  for (const auto& [foreign, title] : places) {
    const bool is_difference = foreign == &matrices.difference;
    const bool none = matrices.difference.range.flat;
    const std::string words = is_difference ? (none ? "" : "±" + largest) : shape_words(rows, cols);
    MatrixPlace place = place_at(id, row, col, {x, top}, size, title, words);
    place.foreign = foreign;
    place.interactive = false;
    place.numbers = has_numbers || !is_difference;
    place.row_labels = foreign == &matrices.ours;
    place.label_room = labels - 8;
    place.col_labels = true;
    place.top_room = key_labels;
    if (draw_matrix(ui, in, state, place, queue) && state.hover) {
      const auto& [hit, r, c] = *state.hover;
      state.selection = Selection{hit, r, c, r, c, false};
      state.keyboard_leads = false;
    }
    x += size.x + kGap;
  }
  const float bars = top + size.y + kBarGap, bar = std::clamp(size.x, kLeastBar, kBar);
  const auto focus = focus_cell(state);
  const auto value_of = [&](const ForeignMatrix& matrix) {
    const bool is_here = focus && focus->id == id && focus->row < rows && focus->col < cols;
    return is_here ? std::optional((*matrix.values)(focus->row, focus->col)) : std::nullopt;
  };
  const int decimals = in.session.view.decimals;
  const float left = min.x + labels;
  draw_bar_below(ui, matrices.ours, matrices.has_values, {left, bars}, bar, value_of(matrices.ours), decimals);
  draw_bar_below(ui, matrices.difference, matrices.has_difference, {left + 2 * (size.x + kGap), bars}, bar,
                 value_of(matrices.difference), decimals);
  return bars + kColorBarHeight;
}

// What it is compared with, and the buttons to choose another file or other arrays of it.
void draw_file_row(Ui& ui, CompareState& compare, ImVec2 at, float width, ActionQueue& queue) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float right = at.x + width;
  draw_text(ui, list, FontRole::kText13, {at.x, at.y + 5}, ui.colors().dim, "against");
  const float file_x = at.x + text_width(ui, FontRole::kText13, "against") + 8;
  draw_label_in(ui, list, {file_x, at.y}, {right - 216, at.y + 26}, compare.other.filename().string(), 13,
                ui.colors().text, TextAlign::kLeft, true);
  if (text_button(ui, "compare/other", {{right - 108, at.y}, {right, at.y + 28}}, "Other file…")) {
    queue.push(CommandId::kCompare);
  }
  const bool has_arrays = compare.result != nullptr && !compare.result->arrays.empty() && compare.failure.empty();
  if (has_arrays && text_button(ui, "compare/names", {{right - 204, at.y}, {right - 116, at.y + 28}}, "Arrays…")) {
    compare.names_shown = !compare.names_shown;
  }
}

}  // namespace

ShownComparison shown_comparison(const CompareResult& result, const CompareState& compare) {
  const std::vector<Difference>& all = result.comparison.differences;
  const auto chosen =
      std::find_if(all.begin(), all.end(), [&](const Difference& each) { return each.kind == compare.matrix; });
  const std::size_t array =
      chosen == all.end() ? most_telling(result.comparison) : static_cast<std::size_t>(chosen - all.begin());
  const int head = compare.head.value_or(most_telling_head(all[array]));
  return {array, std::clamp(head, 0, static_cast<int>(result.ours[array].size()) - 1)};
}

void draw_compare_tab(Ui& ui, const StageInput& in, StageState& state, CompareState& compare, ImVec2 min, ImVec2 max,
                      ActionQueue& queue) {
  const float width = max.x - min.x - 2 * kMargin;
  ImVec2 at{min.x + kMargin, min.y + 16};
  draw_file_row(ui, compare, at, width, queue);
  at.y += 42;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const CompareResult* result = compare.result.get();
  if (!compare.failure.empty()) {
    ui.widgets->add("compare/failure", at, {at.x + width, at.y + 20});
    at.y += draw_label_paragraph(ui, list, at, width, "Could not compare: " + compare.failure, 13, ui.colors().text);
  }
  const bool can_choose = result != nullptr && !result->arrays.empty() && !is_pending(in.computed);
  if (can_choose && (compare.names_shown || !compare.failure.empty())) {
    if (!compare.failure.empty()) at.y += 16;
    draw_text(ui, list, FontRole::kText13, at, ui.colors().dim, "Which array of theirs is which matrix:");
    at.y += 28;
    const float below = compare.failure.empty() ? kLeastRest : 8;
    at.y += draw_compare_names(ui, in.computed, compare, at, {width, max.y - below - at.y}) + 8;
  }
  if (!compare.failure.empty()) return;
  // Numbers before an edit that changed shapes have no cells to show here.
  const auto fits = [&] {
    const Result<Shapes> shapes = check_session(result->session);
    return shapes.ok() && shapes.value() == in.computed.trace.shapes;
  };
  if (result == nullptr || !result->failure.empty() || !fits()) {
    draw_text(ui, list, FontRole::kText13, at, ui.colors().dim, "Comparing…");
    return;
  }
  const ShownComparison shown = shown_comparison(*result, compare);
  at.y += draw_choices(ui, *result, shown, compare, at, width) + 16;
  const MatrixId id{result->comparison.differences[shown.array].kind, shown.head};
  const Three matrices = three(in, compare, shown);
  const float words_room = result->comparison.equal() ? kFewWords : kWords;
  const float end =
      draw_three(ui, in, state, matrices, id, at, {at.x + width, std::max(at.y + 160, max.y - words_room)}, queue);
  // Its own window: long words scroll.
  const float top = end + 20;
  ImGui::SetCursorScreenPos({min.x, top});
  ImGui::BeginChild("compare-words", {max.x - min.x, std::max(40.0f, max.y - top)}, false,
                    ImGuiWindowFlags_NoNav | ImGuiWindowFlags_NoBackground);
  const ImVec2 words{ImGui::GetCursorScreenPos().x + kMargin, ImGui::GetCursorScreenPos().y};
  draw_compare_summary(ui, *result, in.tokens, shown.array, state, compare, words, std::min(width, 760.0f));
  ImGui::EndChild();
}

}  // namespace qkv
