#include "app/panels/heads_tab.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/panels/lens.h"
#include "core/base/number_text.h"

namespace qkv {
namespace {

constexpr float kGap = 12, kPadding = 12, kTitle = 32, kStats = 68;

struct Grid {
  int columns = 1;
  float side = 0;  // of a heat map
};

// The number of columns that gives the largest heat maps.
Grid best_grid(int heads, float width, float height) {
  Grid best;
  for (int columns = 1; columns <= heads; ++columns) {
    const int rows = (heads + columns - 1) / columns;
    const float w = (width - kGap * static_cast<float>(columns - 1)) / static_cast<float>(columns) - 2 * kPadding;
    const float h =
        (height - kGap * static_cast<float>(rows - 1)) / static_cast<float>(rows) - kTitle - kStats - kPadding;
    const float side = std::min({w, h, 320.0f});
    if (side > best.side) best = {columns, side};
  }
  // Too many to see at once: cards of a readable size, and the tab scrolls.
  if (best.side < 96) {
    const float side = 120;
    const int columns = std::max(1, static_cast<int>((width + kGap) / (side + 2 * kPadding + kGap)));
    best = {columns, side};
  }
  best.side = std::floor(best.side);
  return best;
}

// `sampled`: of some rows. `known`: there are statistics.
void draw_stats(Ui& ui, ImDrawList* list, const HeadDigest& digest, bool known, ImVec2 at, float width) {
  const HeadStats& stats = digest.stats;
  const std::pair<const char*, double> rows[] = {
      {"entropy", stats.entropy}, {"previous token", stats.previous_token}, {"first token", stats.first_token}};
  for (const auto& [name, value] : rows) {
    draw_text_in(ui, list, FontRole::kSmall11, at, {at.x + width, at.y + 20}, ui.colors().dim, name, TextAlign::kLeft);
    draw_text_in(ui, list, FontRole::kSmall11, at, {at.x + width, at.y + 20}, ui.colors().text,
                 !known ? "…" : (digest.sampled ? "≈ " : "") + format_fixed(value, 2), TextAlign::kRight);
    at.y += 20;
  }
}

// How many rows of given weights do not sum to 1, in as many words as fit.
void draw_row_sums(Ui& ui, ImDrawList* list, Index off, ImVec2 min, ImVec2 max) {
  const std::string count = std::to_string(off);
  const std::string texts[] = {count + (off == 1 ? " row does not sum to 1" : " rows do not sum to 1"),
                               count + (off == 1 ? " sum ≠ 1" : " sums ≠ 1"), "≠ 1"};
  for (const std::string& text : texts) {
    if (text_width(ui, FontRole::kSmall11, text) > max.x - min.x) continue;
    return draw_text_in(ui, list, FontRole::kSmall11, min, max, ui.colors().warning, text, TextAlign::kRight);
  }
}

void draw_card(Ui& ui, const StageInput& in, StageState& state, int head, ImVec2 min, float side, ActionQueue& queue) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 max{min.x + side + 2 * kPadding, min.y + side + kTitle + kStats + kPadding};
  const std::string name = "head-card/" + std::to_string(head + 1);
  ImGui::SetCursorScreenPos(min);
  ImGui::SetItemAllowOverlap();
  bool open = ImGui::InvisibleButton(name.c_str(), {max.x - min.x, max.y - min.y});
  const bool hovered =
      ImGui::IsMouseHoveringRect(min, max) && ImGui::IsWindowHovered(ImGuiHoveredFlags_AllowWhenBlockedByActiveItem);
  ui.widgets->add(name, min, max);
  list->AddRectFilled(min, max, to_u32(ui.colors().panel), 8);
  const bool current = head == in.session.view.head;
  list->AddRect(min, max,
                to_u32(current   ? ui.colors().accent
                       : hovered ? ui.colors().faint
                                 : ui.colors().line),
                8, 0, current ? 2.0f : 1.0f);
  const ImVec2 dot{min.x + kPadding + 4, min.y + kTitle / 2 + 1};
  list->AddCircleFilled(dot, 4, to_u32(head_color(head)), 20);
  if (head_color_repeats(head)) list->AddCircle(dot, 6.5f, to_u32(head_color(head)), 20, 1.2f);
  const std::string head_name = "head " + std::to_string(head + 1);
  draw_text_in(ui, list, FontRole::kBold13, {min.x + kPadding + 16, min.y}, {max.x, min.y + kTitle}, ui.colors().text,
               head_name, TextAlign::kLeft);
  MatrixPlace place;
  place.id = {MatrixKind::kAttn, head};
  place.min = {min.x + kPadding, min.y + kTitle};
  place.size = {side, side};
  place.interactive = false;
  // The same in every card: numbers that fit one head would not fit another.
  constexpr float kNumberCell = 30;
  place.numbers = side >= kNumberCell * static_cast<float>(in.computed.trace.shapes.nk);
  if (has_lens(in, place.id)) {
    const std::string title = lens_title(ui, in, place.id, false, "", {side - 72, place.numbers});
    draw_text_in(ui, list, FontRole::kSmall11, {min.x, min.y}, {max.x - kPadding, min.y + kTitle}, ui.colors().dim,
                 title, TextAlign::kRight);
    place.unit_is_written = true;
  }
  open = draw_matrix(ui, in, state, place, queue) || open;
  const TraceDigest& digest = in.computed.digest;
  if (const Index off = digest.heads[static_cast<std::size_t>(head)].unnormalised_rows; off > 0)
    draw_row_sums(ui, list, off, {min.x + kPadding + 24 + text_width(ui, FontRole::kBold13, head_name), min.y},
                  {max.x - kPadding, min.y + kTitle});
  draw_stats(ui, list, digest.heads[static_cast<std::size_t>(head)], !digest.refining,
             {min.x + kPadding, min.y + kTitle + side + 4}, side);
  if (open) {
    ViewSettings view = in.session.view;
    view.head = head;
    view.tab = Tab::kHead;
    queue.push(SetView{view});
  }
}

}  // namespace

std::vector<int> ordered_heads(const TraceDigest& digest, HeadOrder order) {
  std::vector<int> heads(digest.heads.size());
  std::iota(heads.begin(), heads.end(), 0);
  const auto key = [&](int head) {
    const HeadStats& stats = digest.heads[static_cast<std::size_t>(head)].stats;
    switch (order) {
      case HeadOrder::kEntropy:
        return stats.entropy;
      case HeadOrder::kPrevious:
        return -stats.previous_token;
      case HeadOrder::kFirst:
        return -stats.first_token;
      case HeadOrder::kNumber:
        break;
    }
    return 0.0;
  };
  std::stable_sort(heads.begin(), heads.end(), [&](int a, int b) { return key(a) < key(b); });
  return heads;
}

void draw_heads_tab(Ui& ui, const StageInput& in, StageState& state, HeadsState& heads, ImVec2 min, ImVec2 max,
                    ActionQueue& queue) {
  constexpr float kMargin = 24;
  ImGui::SetCursorScreenPos(min);
  ImGui::BeginChild("heads-grid", {max.x - min.x, max.y - min.y});
  const std::vector<int> order = ordered_heads(in.computed.digest, heads.order);
  const int count = static_cast<int>(order.size());
  const float width = max.x - min.x - 2 * kMargin, height = max.y - min.y - 2 * kMargin;
  const Grid grid = best_grid(count, width, height);
  const float card_w = grid.side + 2 * kPadding, card_h = grid.side + kTitle + kStats + kPadding;
  const float used = card_w * static_cast<float>(grid.columns) + kGap * static_cast<float>(grid.columns - 1);
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float x0 = origin.x + kMargin + std::floor(std::max(0.0f, (width - used) / 2));
  for (int i = 0; i < count; ++i) {
    const ImVec2 at{x0 + (card_w + kGap) * static_cast<float>(i % grid.columns),
                    origin.y + kMargin + (card_h + kGap) * static_cast<float>(i / grid.columns)};
    if (ImGui::IsRectVisible(at, {at.x + card_w, at.y + card_h}))
      draw_card(ui, in, state, order[static_cast<std::size_t>(i)], at, grid.side, queue);
  }
  const int rows = (count + grid.columns - 1) / grid.columns;
  ImGui::SetCursorScreenPos({origin.x, origin.y + kMargin + (card_h + kGap) * static_cast<float>(rows) - kGap});
  ImGui::Dummy({1, kMargin});
  ImGui::EndChild();
}

}  // namespace qkv
