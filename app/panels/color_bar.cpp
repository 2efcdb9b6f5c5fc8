#include "app/panels/color_bar.h"

#include <algorithm>
#include <cmath>

#include "core/base/number_text.h"
#include "core/figure/cell_text.h"

namespace qkv {

void draw_bar(Ui& ui, ImVec2 at, float width, ColorBar bar, int decimals) {
  bar.range.low *= bar.factor;
  bar.range.high *= bar.factor;
  if (bar.mark) *bar.mark *= bar.factor;
  const ColorRange& range = bar.range;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ColorTable& table = ui.table(bar.colormap);
  const float height = 10;
  for (int i = 0; i < 64; ++i) {
    const float x0 = at.x + width * static_cast<float>(i) / 64, x1 = at.x + width * static_cast<float>(i + 1) / 64;
    const ImDrawFlags corners = i == 0    ? ImDrawFlags_RoundCornersLeft
                                : i == 63 ? ImDrawFlags_RoundCornersRight
                                          : ImDrawFlags_RoundCornersNone;
    const std::size_t entry = range.flat ? 128 : static_cast<std::size_t>(i * 4 + 2);
    list->AddRectFilled({x0, at.y}, {x1, at.y + height}, to_u32(table[entry]), 4, corners);
  }
  if (bar.mark && std::isfinite(*bar.mark)) {
    const float x = at.x + width * static_cast<float>(std::clamp(range.position(*bar.mark), 0.0, 1.0));
    list->AddTriangleFilled({x - 4, at.y - 6}, {x + 4, at.y - 6}, {x, at.y - 1}, to_u32(ui.colors().text));
  }
  const float y = at.y + height + 4;
  if (range.flat) {
    draw_text_in(ui, list, FontRole::kSmall11, {at.x, y}, {at.x + width, y + 14}, ui.colors().dim,
                 "all " + format_value(range.low, decimals), TextAlign::kCenter);
    return;
  }
  const auto whole = [](float v) { return v == std::round(v) && std::abs(v) < 1e5f; };
  const int digits = whole(range.low) && whole(range.high) ? 0 : decimals;
  std::string low = format_value(range.low, digits), high = format_value(range.high, digits);
  const auto width_of = [&](std::string_view text) { return text_width(ui, FontRole::kSmall11, text); };
  if (width_of(low) + width_of(high) + 8 > width) {
    low = brief_cell_text(range.low, digits);
    high = brief_cell_text(range.high, digits);
  }
  const auto word = [&](std::string_view text, float left, float right, TextAlign align) {
    draw_text_in(ui, list, FontRole::kSmall11, {left, y}, {right, y + 14}, ui.colors().dim, text, align);
  };
  word(low, at.x, at.x + width, TextAlign::kLeft);
  word(high, at.x, at.x + width, TextAlign::kRight);
  if (!range.log) return;
  word("log", at.x + width_of(low), at.x + width - width_of(high), TextAlign::kCenter);
}

}  // namespace qkv
