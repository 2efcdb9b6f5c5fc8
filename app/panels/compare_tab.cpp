#include "app/panels/compare_tab.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "app/panels/compare_summary.h"
#include "app/panels/fit.h"
#include "app/panels/matrix_view.h"
#include "core/session/compare_words.h"

namespace qkv {
namespace {

constexpr float kMargin = 24, kGap = 28, kPill = 26, kTitle = 26, kWords = 236;

// The array to show: the chosen kind, else what most look for and differs, else the first that does, else the weights.
std::size_t shown_array(const CompareResult& result, const CompareState& compare) {
  const std::vector<Difference>& all = result.comparison.differences;
  const auto find = [&](auto fits) {
    return static_cast<std::size_t>(std::find_if(all.begin(), all.end(), fits) - all.begin());
  };
  std::size_t at = find([&](const Difference& each) { return compare.matrix && each.kind == *compare.matrix; });
  for (const MatrixKind kind : {MatrixKind::kAttn, MatrixKind::kHeadsOut, MatrixKind::kOut}) {
    if (at == all.size()) at = find([&](const Difference& each) { return each.kind == kind && !each.equal(); });
  }
  if (at == all.size()) at = find([](const Difference& each) { return !each.equal(); });
  if (at == all.size()) at = find([](const Difference& each) { return each.kind == MatrixKind::kAttn; });
  return at == all.size() ? 0 : at;
}

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
float draw_choices(Ui& ui, const CompareResult& result, std::size_t array, CompareState& compare, ImVec2 at,
                   float width) {
  const std::vector<Difference>& all = result.comparison.differences;
  float x = at.x, y = at.y;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string text(file_key(all[i].kind));
    wrap(x, y, at.x, at.x + width, text_width(ui, FontRole::kText13, text) + 34);
    if (pill(ui, "compare/matrix/" + text, text, i == array, !all[i].equal(), x, y)) compare.matrix = all[i].kind;
  }
  const Difference& difference = all[array];
  if (difference.errors.size() > 1) {
    x = at.x;
    y += kPill + 8;
    for (std::size_t head = 0; head < difference.errors.size(); ++head) {
      const std::string text = "head " + std::to_string(head + 1);
      const bool chosen = static_cast<int>(head) == compare.head;
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
};

Three three(const StageInput& in, const CompareResult& result, std::size_t array, std::size_t head) {
  const Difference& found = result.comparison.differences[array];
  const ViewSettings& view = in.session.view;
  const bool weights = is_weights(found.kind);
  const Matrix& ours = result.ours[array][head];
  const Matrix& theirs = result.theirs[array][head];
  const FiniteExtent both = merge(finite_extent(ours), finite_extent(theirs));
  const ColorRange range = resolve_range(weights ? view.weights_range : view.signed_range, both);
  const std::string& map = weights ? view.weights_map : view.signed_map;
  const ColorRange around_zero = resolve_range({RangeMode::kSymmetric, -1, 1}, finite_extent(found.errors[head]));
  const std::uint64_t key = array * 4096 + head * 4, version = result.version;
  return {{&ours, map, range, key, version, "ours"},
          {&theirs, map, range, key + 1, version, "theirs"},
          {&found.errors[head], view.signed_map, around_zero, key + 2, version, "difference"}};
}

// The three side by side. Returns where they end.
float draw_three(Ui& ui, const StageInput& in, StageState& state, const Three& matrices, const MatrixId& id, ImVec2 min,
                 ImVec2 max, ActionQueue& queue) {
  const Index rows = matrices.ours.values->rows(), cols = matrices.ours.values->cols();
  const Axis row = row_axis(id.kind), col = col_axis(id.kind);
  const float labels = row_label_room(ui, shown_names(in, row, rows), 96) + 8;
  const float room_w = (max.x - min.x - labels - 2 * kGap) / 3;
  const std::array across = {cols}, down = {rows};
  AxisFit w = fit_axes(across, room_w);
  const float key_labels = col_label_room(ui, shown_names(in, col, cols), static_cast<float>(w.cell), 72);
  const float top = min.y + kTitle + key_labels;
  AxisFit h = fit_axes(down, std::max(60.0f, max.y - top));
  square_cells(w, h);
  const ImVec2 size{w.length(cols), h.length(rows)};
  const std::string largest = error_text(std::max(std::abs(static_cast<double>(matrices.difference.range.low)),
                                                  std::abs(static_cast<double>(matrices.difference.range.high))));
  const std::pair<const ForeignMatrix*, std::string> places[] = {
      {&matrices.ours, "Ours"}, {&matrices.theirs, "Theirs"}, {&matrices.difference, "Theirs − ours"}};
  float x = min.x + labels;
  for (const auto& [foreign, title] : places) {
    const bool is_difference = foreign == &matrices.difference;
    const bool none = matrices.difference.range.flat;
    const std::string words = is_difference ? (none ? "" : "±" + largest) : shape_words(rows, cols);
    MatrixPlace place = place_at(id, row, col, {x, top}, size, title, words);
    place.foreign = foreign;
    place.interactive = false;
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
  return top + size.y;
}

}  // namespace

void draw_compare_tab(Ui& ui, const StageInput& in, StageState& state, CompareState& compare, ImVec2 min, ImVec2 max,
                      ActionQueue& queue) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float width = max.x - min.x - 2 * kMargin;
  ImVec2 at{min.x + kMargin, min.y + 16};
  draw_text(ui, list, FontRole::kText13, {at.x, at.y + 5}, ui.colors().dim, "against");
  const float file_x = at.x + text_width(ui, FontRole::kText13, "against") + 8;
  draw_label_in(ui, list, {file_x, at.y}, {at.x + width - 120, at.y + 26}, compare.other.filename().string(), 13,
                ui.colors().text, TextAlign::kLeft, true);
  if (text_button(ui, "compare/other", {{at.x + width - 108, at.y}, {at.x + width, at.y + 28}}, "Other file…")) {
    queue.push(CommandId::kCompare);
  }
  at.y += 42;
  const CompareResult* result = compare.result.get();
  if (!compare.failure.empty()) {
    ui.widgets->add("compare/failure", at, {at.x + width, at.y + 20});
    draw_label_paragraph(ui, list, at, width, "Could not compare: " + compare.failure, 13, ui.colors().text);
    return;
  }
  // Numbers before an edit that changed shapes have no cells to show here.
  const auto fits = [&] {
    const Result<Shapes> shapes = check_session(result->session);
    return shapes.ok() && shapes.value() == in.computed.trace.shapes;
  };
  if (result == nullptr || !fits()) {
    draw_text(ui, list, FontRole::kText13, at, ui.colors().dim, "Comparing…");
    return;
  }
  const std::size_t array = shown_array(*result, compare);
  const std::size_t heads = result->ours[array].size();
  compare.head = std::clamp(compare.head, 0, static_cast<int>(heads) - 1);
  at.y += draw_choices(ui, *result, array, compare, at, width) + 16;
  const MatrixId id{result->comparison.differences[array].kind, compare.head};
  const Three matrices = three(in, *result, array, static_cast<std::size_t>(compare.head));
  const float end =
      draw_three(ui, in, state, matrices, id, at, {at.x + width, std::max(at.y + 160, max.y - kWords)}, queue);
  // Its own window: long words scroll.
  const float top = end + 20;
  ImGui::SetCursorScreenPos({min.x, top});
  ImGui::BeginChild("compare-words", {max.x - min.x, std::max(40.0f, max.y - top)}, false,
                    ImGuiWindowFlags_NoNav | ImGuiWindowFlags_NoBackground);
  const ImVec2 words{ImGui::GetCursorScreenPos().x + kMargin, ImGui::GetCursorScreenPos().y};
  draw_compare_summary(ui, *result, in.tokens, array, state, compare, words, std::min(width, 760.0f));
  ImGui::EndChild();
}

}  // namespace qkv
