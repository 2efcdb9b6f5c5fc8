#include "app/panels/frame_panels.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "app/engine/pending.h"
#include "app/panels/lens.h"
#include "core/attention/formula.h"
#include "core/attention/streamed_pass.h"
#include "core/base/ascii.h"
#include "core/base/number_text.h"

namespace qkv {
namespace {

constexpr float kHeadRow = 36;
constexpr const char* kNoLens =
    "Gradient and Precision follow the way from Q, K and V to the output. This session holds attention weights alone, "
    "so there are only their values to show.";

std::string subscript(int number) {
  static constexpr const char* kDigits[] = {"₀", "₁", "₂", "₃", "₄", "₅", "₆", "₇", "₈", "₉"};
  std::string text;
  for (const char c : std::to_string(number)) text += kDigits[c - '0'];
  return text;
}

std::string formula(Tab tab, const StageInput& in) {
  if (is_weights_only(in.computed.session.problem.source)) return "A, as given";
  switch (tab) {
    case Tab::kConcat: {
      const int heads = in.computed.trace.shapes.heads;
      const std::string inside = heads == 1 ? "head₁" : heads == 2 ? "head₁, head₂" : "head₁ … head" + subscript(heads);
      return "Concat(" + inside + ")" + (in.computed.trace.shapes.d_out > 0 ? " · Wᴼ" : "");
    }
    case Tab::kProjection:
      return "Q = X W^Q,  K = X W^K,  V = X W^V";
    default:
      return attention_formula(in.computed.session.problem.options);
  }
}

void draw_head_row(Ui& ui, const StageInput& in, ImVec2 at, float width, ActionQueue& queue) {
  const int heads = in.computed.trace.shapes.heads;
  ImDrawList* list = ImGui::GetWindowDrawList();
  // As many as fit, the current one among them; Page Up and Page Down walk on.
  const float widest = text_width(ui, FontRole::kText13, std::to_string(heads)) + 36;
  const int fit = std::max(1, static_cast<int>(width / widest));
  const int first = std::clamp(in.session.view.head - fit / 2, 0, std::max(0, heads - fit));
  float x = at.x;
  for (int head = first; head < heads; ++head) {
    const std::string text = std::to_string(head + 1);
    const float chip = text_width(ui, FontRole::kText13, text) + 32;
    if (x + chip > at.x + width) break;
    const ImVec2 min{x, at.y + 6}, max{x + chip, at.y + 30};
    ImGui::SetCursorScreenPos(min);
    const std::string name = "head/" + text;
    if (ImGui::InvisibleButton(name.c_str(), {chip, 24})) {
      ViewSettings view = in.session.view;
      view.head = head;
      queue.push(SetView{view});
    }
    ui.widgets->add(name, min, max);
    const bool current = head == in.session.view.head;
    if (current || ImGui::IsItemHovered()) {
      list->AddRectFilled(min, max, to_u32(ui.colors().panel), 6);
      list->AddRect(min, max, to_u32(current ? head_color(head) : ui.colors().line), 6, 0, 1);
    }
    list->AddCircleFilled({x + 12, at.y + 18}, 4, to_u32(head_color(head)), 20);
    if (head_color_repeats(head)) list->AddCircle({x + 12, at.y + 18}, 6.5f, to_u32(head_color(head)), 20, 1.2f);
    draw_text_in(ui, list, FontRole::kText13, {x + 22, min.y}, max, current ? ui.colors().text : ui.colors().dim, text,
                 TextAlign::kLeft);
    x += chip + 4;
  }
}

struct StatusWord {
  std::string text;
  Color color;
  std::optional<CommandId> command = {};  // a button
};

std::string count_text(Index count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

// Finite cells of the trace beyond the ends of a colour scale.
bool clips(const ColorRange& range, const FiniteExtent& extent) {
  if (range.flat || extent.count == 0) return false;
  // Zero is on a logarithmic scale too.
  const float least = range.log && extent.low == 0 ? extent.positive : extent.low;
  return (least < range.low && !(range.log && least == 0)) || extent.high > range.high;
}

std::vector<StatusWord> status_words(const Ui& ui, const StageInput& in, const StatusInput& status) {
  const TraceDigest& d = in.computed.digest;
  std::vector<StatusWord> words;
  if (in.lens != nullptr) words.push_back({lens_line(in), ui.colors().accent});
  const double progress = in.computed.trace.streams.empty() ? 1 : streamed_progress(in.computed.trace);
  const std::string percent = std::to_string(static_cast<int>(100 * progress)) + " %";
  if (in.missing == Missing::kStopped) {
    words.push_back({"stopped at " + percent, ui.colors().warning});
    words.push_back({"Go on", ui.colors().text, CommandId::kStop});
  } else if (progress < 1) {
    words.push_back({"computing … " + percent, ui.colors().accent});
    if (status.can_stop) words.push_back({"Stop", ui.colors().text, CommandId::kStop});
  } else if (status.busy) {
    words.push_back({"computing …", ui.colors().accent});
  }
  if (d.warnings.nan_inputs > 0)
    words.push_back(
        {count_text(d.warnings.nan_inputs, "input is NaN or infinite", "inputs are NaN or infinite"), ui.colors().bad});
  if (d.warnings.nan_outputs > 0)
    words.push_back({"NaN in " + count_text(d.warnings.nan_outputs, "output cell", "output cells"), ui.colors().bad});
  if (d.warnings.dead_rows > 0)
    words.push_back({count_text(d.warnings.dead_rows, "dead row: it sees no key", "dead rows: they see no key"),
                     ui.colors().warning});
  if (d.warnings.unnormalised_rows > 0)
    words.push_back({count_text(d.warnings.unnormalised_rows, "row does not sum to 1", "rows do not sum to 1"),
                     ui.colors().warning});
  bool clipped = false;
  for (const MatrixKind kind : kAllMatrixKinds)
    clipped = clipped || (kind != MatrixKind::kKeep && clips(shown_range(in, {kind, 0}), shown_extent(in, {kind, 0})));
  if (clipped) words.push_back({"values beyond the colour range", ui.colors().warning});
  const bool given_nan = is_weights_only(in.computed.trace.problem.source) && d.warnings.nan_inputs > 0;
  const bool sink = !in.computed.session.problem.options.sink.empty();
  if (d.warnings.nan_outputs == 0 && !given_nan && d.warnings.dead_rows == 0 && d.worst_row_sum <= 1e-5 && !d.refining)
    words.push_back({sink ? "rows and sink sum to 1" : "rows sum to 1", ui.colors().good});
  else if (is_weights_only(in.computed.trace.problem.source) && !d.refining && d.warnings.unnormalised_rows == 0 &&
           d.warnings.nan_inputs == 0)
    words.push_back({"rows sum to 1, off by at most " + format_value(d.worst_row_sum, 4), ui.colors().good});
  return words;
}

}  // namespace

float draw_tab_bar(Ui& ui, const StageInput& in, const CompareState& compare, ImVec2 min, float width,
                   ActionQueue& queue) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  struct TabName {
    Tab tab;
    CommandId command;
    const char* text;
  };
  std::vector<TabName> tabs = {{Tab::kHead, CommandId::kTabHead, "One head"},
                               {Tab::kHeads, CommandId::kTabHeads, "All heads"}};
  const bool given = is_weights_only(in.session.problem.source);
  if (!given) tabs.push_back({Tab::kConcat, CommandId::kTabConcat, "Concat · Wᴼ"});
  if (in.computed.trace.shapes.d_model > 0) {
    tabs.insert(tabs.begin(), {Tab::kProjection, CommandId::kTabProjection, "X · W"});
  }
  const float bottom = min.y + kTabBarHeight;
  list->AddLine({min.x, bottom - 0.5f}, {min.x + width, bottom - 0.5f}, to_u32(ui.colors().line));
  float x = min.x + 24;
  // True when clicked.
  const auto draw_tab = [&](const std::string& name, const char* text, bool current) {
    const float w = text_width(ui, FontRole::kBold14, text);
    ImGui::SetCursorScreenPos({x - 10, min.y});
    const bool clicked = ImGui::InvisibleButton(name.c_str(), {w + 20, kTabBarHeight});
    ui.widgets->add(name, {x - 10, min.y}, {x + w + 10, bottom});
    draw_text_in(ui, list, current ? FontRole::kBold14 : FontRole::kText14, {x, min.y}, {x + w, bottom},
                 current || ImGui::IsItemHovered() ? ui.colors().text : ui.colors().dim, text, TextAlign::kCenter);
    if (current) list->AddRectFilled({x, bottom - 2}, {x + w, bottom}, to_u32(ui.colors().accent));
    x += w + 28;
    return clicked;
  };
  for (const TabName& tab : tabs) {
    const bool current = !compare.shown && in.session.view.tab == tab.tab;
    if (draw_tab(std::string("tab/") + tab_name(tab.tab), tab.text, current)) queue.push(tab.command);
  }
  if (!compare.other.empty() && draw_tab("tab/compare", "Compare", compare.shown)) queue.push(CommandId::kTabCompare);
  if (compare.shown) return kTabBarHeight;
  const bool per_head = in.session.view.tab == Tab::kHead || in.session.view.tab == Tab::kProjection;
  const bool has_heads = per_head && in.computed.trace.shapes.heads > 1;
  if (has_heads) draw_head_row(ui, in, {min.x + 20, bottom}, width - 40, queue);
  // The lens stands beside the tabs where there is room, else in a row of its own; what is computed, at its left.
  const float right = min.x + width - 24, heads_height = has_heads ? kHeadRow : 0;
  const bool beside = x + kLensRoom <= right;
  const float lens_top = beside ? min.y + 7 : bottom + heads_height + 3;
  const float lens_left = given ? right : draw_lens_choice(ui, in, right, lens_top, queue) - 20;
  const std::string words = in.lens != nullptr ? lens_line(in) : formula(in.session.view.tab, in);
  const float words_x = lens_left - formula_width(ui, FontRole::kText13, words);
  if (words_x >= (beside ? x : min.x + 24))
    draw_formula(ui, list, FontRole::kText13, {words_x, lens_top + 8.5f}, ui.colors().dim, words);
  if (given) {
    ImGui::SetCursorScreenPos({words_x, lens_top});
    ImGui::Dummy({right - words_x, 30});
    ui.widgets->add("lens/none", {words_x, lens_top}, {right, lens_top + 30});
    tooltip(ui, kNoLens);
  }
  return kTabBarHeight + heads_height + (beside ? 0 : kHeadRow);
}

void draw_status_bar(Ui& ui, const StageInput& in, const StatusInput& status, ImVec2 min, ImVec2 max,
                     ActionQueue& queue) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(min, max, to_u32(ui.colors().panel));
  list->AddLine({min.x, min.y + 0.5f}, {max.x, min.y + 0.5f}, to_u32(ui.colors().line));
  const Shapes& s = in.computed.trace.shapes;
  std::string shapes = "Nq " + std::to_string(s.nq) + " · Nk " + std::to_string(s.nk);
  if (s.d_k > 0) shapes += " · dₖ " + std::to_string(s.d_k) + " · dᵥ " + std::to_string(s.d_v);
  if (s.d_model > 0) shapes += " · d_model " + std::to_string(s.d_model);
  shapes += " · " + count_text(s.heads, "head", "heads");
  if (s.kv_heads != s.heads) shapes += " on " + std::to_string(s.kv_heads) + " key/value heads";
  float x = min.x + 16;
  const auto word = [&](const std::string& text, Color color) {
    draw_text_in(ui, list, FontRole::kSmall11, {x, min.y}, {max.x, max.y}, color, text, TextAlign::kLeft);
    x += text_width(ui, FontRole::kSmall11, text) + 22;
  };
  // True when clicked.
  const auto button = [&](const std::string& text, Color color) {
    const float width = text_width(ui, FontRole::kSmall11, text) + 20;
    const ImVec2 from{x - 8, min.y + 4}, to{x - 8 + width, max.y - 3};
    const std::string name = "status/" + text;
    ImGui::SetCursorScreenPos(from);
    const bool clicked = ImGui::InvisibleButton(name.c_str(), {to.x - from.x, to.y - from.y});
    ui.widgets->add(name, from, to);
    if (ImGui::IsItemHovered()) list->AddRectFilled(from, to, to_u32(ui.colors().accent_soft), 5);
    list->AddRect(from, to, to_u32(ui.colors().line), 5, 0, 1);
    draw_text_in(ui, list, FontRole::kSmall11, from, to, color, text, TextAlign::kCenter);
    x = to.x + 14;
    return clicked;
  };
  word(shapes, ui.colors().dim);
  const double ms = in.computed.trace.seconds * 1e3;  // 0 where nothing is computed yet
  const std::string time = ms < 0.1   ? format_fixed(ms * 1e3, 0) + " µs"
                           : ms < 1e4 ? format_fixed(ms, ms < 10 ? 2 : 0) + " ms"
                                      : format_fixed(ms / 1e3, 1) + " s";
  if (ms > 0 && !in.computed.digest.refining) word(time, ui.colors().dim);
  if (!status.failure.empty())
    word((is_pending(in.computed) ? "" : "these are the last numbers: ") + status.failure, ui.colors().bad);
  else
    for (const StatusWord& item : status_words(ui, in, status)) {
      if (!item.command)
        word(item.text, item.color);
      else if (button(item.text, item.color))
        queue.push(*item.command);
    }
  const std::string zoom = std::to_string(static_cast<int>(std::lround(status.zoom * 100))) + " %";
  draw_text_in(ui, list, FontRole::kSmall11, min, {max.x - 16, max.y}, ui.colors().dim, zoom, TextAlign::kRight);
  ui.widgets->add("status", min, max);
}

void draw_toasts(Ui& ui, std::vector<Toast>& toasts, ImVec2 bottom_center) {
  std::erase_if(toasts, [&](const Toast& toast) { return toast.until <= ui.time; });
  ImDrawList* list = ImGui::GetForegroundDrawList();
  float bottom = bottom_center.y - 12;
  for (std::size_t i = toasts.size(); i-- > 0;) {
    const Toast& toast = toasts[i];
    ui.redraw_within(toast.until - ui.time);
    const float width = std::min(label_width(ui, toast.text, 13), ImGui::GetIO().DisplaySize.x - 80) + 32;
    const ImVec2 min{bottom_center.x - width / 2, bottom - 38}, max{bottom_center.x + width / 2, bottom};
    list->AddRectFilled({min.x, min.y + 2}, {max.x, max.y + 3}, IM_COL32(0, 0, 0, 28), 9);
    list->AddRectFilled(min, max, to_u32(ui.colors().text), 8);
    draw_label_in(ui, list, {min.x + 16, min.y}, {max.x - 16, max.y}, toast.text, 13, ui.colors().panel,
                  TextAlign::kCenter);
    ui.widgets->add("toast/" + std::to_string(i), min, max);
    bottom = min.y - 8;
  }
}

namespace {

bool contains_words(std::string_view text, std::string_view words) {
  const std::string haystack = lower_ascii(text), needle = lower_ascii(words);
  std::size_t at = 0;
  while (at < needle.size()) {
    std::size_t end = needle.find(' ', at);
    if (end == std::string::npos) end = needle.size();
    if (haystack.find(needle.substr(at, end - at)) == std::string::npos) return false;
    at = end + 1;
  }
  return true;
}

bool palette_row(Ui& ui, const CommandInfo& command, std::string_view text, bool selected) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const std::string name = "palette/" + std::string(command.text);
  const bool clicked = ImGui::InvisibleButton(name.c_str(), {width, 30});
  ui.widgets->add(name, at, {at.x + width, at.y + 30});
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (selected || ImGui::IsItemHovered())
    list->AddRectFilled(at, {at.x + width, at.y + 30}, to_u32(ui.colors().accent_soft), 6);
  draw_text_in(ui, list, FontRole::kText13, {at.x + 10, at.y}, {at.x + width, at.y + 30}, ui.colors().text, text,
               TextAlign::kLeft);
  draw_text_in(ui, list, FontRole::kSmall11, at, {at.x + width - 10, at.y + 30}, ui.colors().dim,
               chord_text(command.chord), TextAlign::kRight);
  return clicked;
}

}  // namespace

void draw_palette(Ui& ui, const CommandContext& context, PaletteState& state, ActionQueue& queue) {
  const char* const kName = "palette";
  if (state.just_opened) {
    ImGui::OpenPopup(kName);
    state.field.edit.set("");
    state.selected = 0;
    focus_text_field(ui, "palette/field", state.field);
    state.just_opened = false;
  }
  const ImVec2 screen = ImGui::GetIO().DisplaySize;
  ImGui::SetNextWindowPos({screen.x / 2, 64}, ImGuiCond_Always, {0.5f, 0});
  ImGui::SetNextWindowSize({460, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {10, 10});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  state.open = ImGui::BeginPopup(kName);
  if (state.open) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x;
    TextFieldLook look;
    look.hint = "find a command";
    const TextFieldResult result = text_field(ui, "palette/field", at, {at.x + width, at.y + 36}, state.field, look);
    ImGui::SetCursorScreenPos(at);
    ImGui::Dummy({width, 44});
    std::vector<const CommandInfo*> found;
    for (const CommandInfo& command : commands())
      if (command.id != CommandId::kPalette && is_enabled(command.id, context) &&
          contains_words(command_text(command, context), state.field.edit.text))
        found.push_back(&command);
    const int count = static_cast<int>(found.size());
    if (result.changed) state.selected = 0;
    if (key_pressed(Key::kDown)) ++state.selected;
    if (key_pressed(Key::kUp)) --state.selected;
    state.selected = count > 0 ? (state.selected + count) % count : 0;
    bool close = result.cancelled || take_escape(ui);
    const int first = std::clamp(state.selected - 9, 0, std::max(0, count - 10));
    for (int i = first; i < std::min(count, first + 10); ++i) {
      const CommandInfo& command = *found[static_cast<std::size_t>(i)];
      const bool clicked = palette_row(ui, command, command_text(command, context), i == state.selected);
      if (!clicked && !(result.entered && i == state.selected)) continue;
      queue.push(command.id);
      close = true;
    }
    if (count == 0) {
      draw_text(ui, ImGui::GetWindowDrawList(), FontRole::kText13, {at.x + 10, at.y + 52}, ui.colors().dim,
                "no command has these words");
      ImGui::Dummy({width, 32});
    }
    if (close) {
      ImGui::CloseCurrentPopup();
      if (ui.focus == "palette/field") ui.focus.clear();
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar(2);
}

}  // namespace qkv
