#include "app/panels/concat_tab.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "app/panels/fit.h"
#include "app/panels/head_tab.h"

namespace qkv {
namespace {

constexpr float kMargin = 24, kGap = 40, kTitleRoom = 26, kBandRoom = 26;

// Colour bands of the heads along an axis of H·size entries, over what the axis shows.
void draw_bands(Ui& ui, const MatrixPlace& place, const AxisView& view, int heads, Index size, bool along_rows) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const double count = static_cast<double>(size) * heads;
  const float length = along_rows ? place.size.y : place.size.x;
  const float start = along_rows ? place.min.y : place.min.x;
  const double cell = length / view.visible(count);
  for (int head = 0; head < heads; ++head) {
    const double a = (static_cast<double>(size) * head - view.first) * cell, b = a + static_cast<double>(size) * cell;
    const float lo = start + static_cast<float>(std::max(0.0, a)) + 0.5f;
    const float hi = start + static_cast<float>(std::min<double>(length, b)) - 0.5f;
    if (hi - lo < 1) continue;
    const ImU32 color = to_u32(head_color(head));
    if (along_rows) {
      list->AddRectFilled({place.min.x - 10, lo}, {place.min.x - 6, hi}, color, 2);
      if (head_color_repeats(head)) list->AddRectFilled({place.min.x - 14, lo}, {place.min.x - 12, hi}, color, 1);
      continue;
    }
    list->AddRectFilled({lo, place.min.y - 10}, {hi, place.min.y - 6}, color, 2);
    if (head_color_repeats(head)) list->AddRectFilled({lo, place.min.y - 14}, {hi, place.min.y - 12}, color, 1);
    std::string text = "head " + std::to_string(head + 1);
    if (text_width(ui, FontRole::kSmall11, text) + 6 > hi - lo) text = std::to_string(head + 1);
    if (text_width(ui, FontRole::kSmall11, text) + 2 <= hi - lo)
      draw_text_in(ui, list, FontRole::kSmall11, {lo, place.min.y - 28}, {hi, place.min.y - 14}, ui.colors().dim, text,
                   TextAlign::kCenter);
  }
}

void draw_without_wo(Ui& ui, ImVec2 at, float width, ActionQueue& queue) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float used = draw_paragraph(ui, list, FontRole::kText13, at, width, ui.colors().dim,
                                    "This session has no Wᴼ: the heads' outputs stand side by side and nothing mixes "
                                    "them yet.");
  if (text_button(ui, "button/add-wo", {{at.x, at.y + used + 8}, {at.x + 88, at.y + used + 38}}, "Add Wᴼ", true))
    queue.push(SetOutputProjection{true});
}

}  // namespace

void draw_concat_tab(Ui& ui, const StageInput& in, StageState& state, ImVec2 min, ImVec2 max, ActionQueue& queue) {
  const Trace& trace = in.computed.trace;
  const Shapes& s = trace.shapes;
  if (s.d_v == 0) return;  // weights alone; the result of the newest session is still on the way
  const Index wide = s.d_v * s.heads;
  const bool has_wo = s.d_out > 0;
  const auto queries = shown_names(in, Axis::kQueries, s.nq);
  const float labels = row_label_room(ui, queries) + 8;
  const float bias = trace.find({MatrixKind::kBo, 0}) != nullptr ? 44.0f : 0.0f;
  const float stage_w = max.x - min.x, stage_h = max.y - min.y;
  const float fixed_w = 2 * kMargin + labels + (has_wo ? kGap + 16 : 0);
  const float fixed_h = kTitleRoom * 2 + kBandRoom + kGap + (has_wo ? 64.0f : 150.0f) + kMargin + bias;
  const std::array across = {wide, std::max<Index>(s.d_out, 1)};
  const std::array down = {has_wo ? wide : Index{1}, s.nq};
  AxisFit w = fit_axes(std::span(across).first(has_wo ? 2 : 1), stage_w - fixed_w);
  AxisFit h = fit_axes(down, stage_h - fixed_h);
  square_cells(w, h);
  // Rows of tokens may be higher than the many rows of W^O, so that their labels and numbers show.
  const float rows_h = std::max(h.length(s.nq), std::min(static_cast<float>(s.nq) * 28, (stage_h - fixed_h) * 0.4f));
  const float wo_h = has_wo ? std::min(h.length(wide), stage_h - fixed_h - rows_h) : 0;
  const float concat_w = w.length(wide), out_w = has_wo ? w.length(s.d_out) : 0;
  const float used_w = fixed_w - 2 * kMargin + concat_w + out_w;
  const float used_h = fixed_h - kMargin + rows_h + wo_h;
  const float x0 = min.x + std::max(kMargin, (stage_w - used_w) / 2) + labels;
  const float y0 = min.y + std::max(8.0f, (stage_h - used_h) / 2) + kTitleRoom;
  const float y1 = has_wo ? y0 + wo_h + kGap + kTitleRoom + bias : y0 + kBandRoom;

  MatrixPlace concat = place_at({MatrixKind::kConcat, 0}, Axis::kQueries, Axis::kHeadsDv, {x0, y1}, {concat_w, rows_h},
                                "Concat", shape_words(s.nq, wide));
  concat.row_labels = true;
  concat.label_room = labels - 8;
  concat.bar_room = kBandRoom;
  draw_matrix(ui, in, state, concat, queue);
  draw_bands(ui, concat, state.axes[Axis::kHeadsDv], s.heads, s.d_v, false);
  if (has_wo) {
    const float x1 = concat.min.x + concat.size.x + kGap + 16;
    MatrixPlace wo = place_at({MatrixKind::kWo, 0}, Axis::kHeadsDv, Axis::kOut, {x1, y0}, {out_w, wo_h}, "Wᴼ",
                              shape_words(wide, s.d_out));
    MatrixPlace out = place_at({MatrixKind::kOut, 0}, Axis::kQueries, Axis::kOut, {x1, y1}, {out_w, rows_h}, "Output",
                               shape_words(s.nq, s.d_out));
    draw_matrix(ui, in, state, wo, queue);
    draw_bands(ui, wo, state.axes[Axis::kHeadsDv], s.heads, s.d_v, true);
    if (bias > 0) {
      MatrixPlace bo = place_at({MatrixKind::kBo, 0}, Axis::kSingle, Axis::kOut, {x1, y0 + wo_h + 28}, {out_w, 18},
                                "bᴼ", "added to every row");
      draw_matrix(ui, in, state, bo, queue);
    }
    draw_matrix(ui, in, state, out, queue);
  }
  const float below = concat.min.y + concat.size.y + 38;
  draw_color_bars(ui, in, state, {x0, below}, {ScaleGroup::kConcat});
  if (has_wo) draw_color_bars(ui, in, state, {x0 + 176, below}, {ScaleGroup::kWo, ScaleGroup::kOut});
  if (!has_wo) draw_without_wo(ui, {x0, below + 46}, std::min(360.0f, max.x - x0 - 16), queue);
}

void draw_projection_tab(Ui& ui, const StageInput& in, StageState& state, ImVec2 min, ImVec2 max, ActionQueue& queue) {
  const Trace& trace = in.computed.trace;
  const Shapes& s = trace.shapes;
  if (s.d_model == 0) return;  // the newest source is projected, its result still on the way
  const int head = std::clamp(in.session.view.head, 0, s.heads - 1), kv = kv_head_of(s, head);
  const auto queries = shown_names(in, Axis::kQueries, s.nq);
  const float labels = row_label_room(ui, queries) + 8;
  const bool biased = trace.find({MatrixKind::kBq, 0}) != nullptr || trace.find({MatrixKind::kBk, 0}) != nullptr ||
                      trace.find({MatrixKind::kBv, 0}) != nullptr;
  const float bias = biased ? 44.0f : 0.0f;
  const float stage_w = max.x - min.x, stage_h = max.y - min.y;
  const float fixed_w = 2 * kMargin + labels + 3 * kGap, fixed_h = kTitleRoom * 2 + kGap + 64 + kMargin + bias;
  const std::array across = {s.d_model, s.d_k, s.d_k, s.d_v};
  const std::array down = {s.d_model, s.nq};
  AxisFit w = fit_axes(across, stage_w - fixed_w), h = fit_axes(down, stage_h - fixed_h);
  square_cells(w, h);
  const float rows_h = std::max(h.length(s.nq), std::min(static_cast<float>(s.nq) * 28, (stage_h - fixed_h) * 0.4f));
  const float top_h = std::min(h.length(s.d_model), stage_h - fixed_h - rows_h);
  const float x_w = w.length(s.d_model);
  const float used_w = fixed_w - 2 * kMargin + x_w + 2 * w.length(s.d_k) + w.length(s.d_v);
  const float x0 = min.x + std::max(kMargin, (stage_w - used_w) / 2) + labels;
  const float y0 = min.y + std::max(8.0f, (stage_h - fixed_h + kMargin - rows_h - top_h) / 2) + kTitleRoom;
  const float y1 = y0 + top_h + kGap + bias + kTitleRoom - 8;

  MatrixPlace x = place_at({MatrixKind::kX, 0}, Axis::kQueries, Axis::kModel, {x0, y1}, {x_w, rows_h}, "X",
                           shape_words(s.nq, s.d_model));
  x.row_labels = true;
  x.label_room = labels - 8;
  draw_matrix(ui, in, state, x, queue);
  struct Part {
    MatrixKind weight, bias, product;
    int head;
    Index size;
    Axis axis;
    const char *weight_title, *bias_title, *title;
  };
  const Part parts[] = {
      {MatrixKind::kWq, MatrixKind::kBq, MatrixKind::kQ, head, s.d_k, Axis::kDk, "W^Q", "b^Q", "Q = X W^Q"},
      {MatrixKind::kWk, MatrixKind::kBk, MatrixKind::kK, kv, s.d_k, Axis::kDk, "W^K", "b^K", "K = X W^K"},
      {MatrixKind::kWv, MatrixKind::kBv, MatrixKind::kV, kv, s.d_v, Axis::kDv, "W^V", "b^V", "V = X W^V"}};
  float left = x.min.x + x.size.x + kGap;
  for (const Part& part : parts) {
    const float width = w.length(part.size);
    const Index first = part.size * part.head;
    MatrixPlace weight =
        place_at({part.weight, 0}, Axis::kModel, part.axis, {left, y0}, {width, top_h}, part.weight_title,
                 s.heads > 1 ? "head " + std::to_string(part.head + 1) : shape_words(s.d_model, part.size));
    weight.part = {0, first, s.d_model, part.size};
    draw_matrix(ui, in, state, weight, queue);
    if (trace.find({part.bias, 0}) != nullptr) {
      MatrixPlace b =
          place_at({part.bias, 0}, Axis::kSingle, part.axis, {left, y0 + top_h + 28}, {width, 18}, part.bias_title, "");
      b.part = {0, first, 1, part.size};
      draw_matrix(ui, in, state, b, queue);
    }
    MatrixPlace product = place_at({part.product, part.head}, Axis::kQueries, part.axis, {left, y1}, {width, rows_h},
                                   std::string(part.title) + (trace.find({part.bias, 0}) != nullptr ? " + b" : ""), "");
    draw_matrix(ui, in, state, product, queue);
    left += width + kGap;
  }
  draw_color_bars(ui, in, state, {x0, y1 + rows_h + 38},
                  {ScaleGroup::kInput, ScaleGroup::kProjection, ScaleGroup::kValues});
}

}  // namespace qkv
