#include "app/ui/controls.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "app/ui/keys.h"
#include "core/base/number_text.h"
#include "core/base/utf8.h"

namespace qkv {
namespace {

constexpr float kLongestList = 436;  // of choices; longer ones scroll

void field_frame(const Ui& ui, ImDrawList* list, const Box& box, bool hovered, bool active) {
  list->AddRectFilled(box.min, box.max, to_u32(ui.colors().field), 6);
  const Color line = active ? ui.colors().accent : hovered ? ui.colors().faint : ui.colors().line;
  list->AddRect(box.min, box.max, to_u32(line), 6, 0, 1);
}

// The text, or "…" and as much of its end as there is room for: names of tensors differ there.
std::string end_that_fits(const Ui& ui, FontRole role, std::string_view text, float width) {
  std::string shown(text);
  for (std::size_t from = 0; from < text.size() && text_width(ui, role, shown) > width;) {
    next_code_point(text, from);
    shown = "…" + std::string(text.substr(from));
  }
  return shown;
}

std::string number_text(double value, bool whole) {
  if (whole) return std::to_string(static_cast<long long>(value));
  return format_shortest(static_cast<float>(value));
}

std::optional<double> typed_value(std::string_view text, const NumberRange& range) {
  const auto number = parse_float(text);
  if (!number || std::isnan(*number)) return std::nullopt;
  const double value = range.whole ? std::round(*number) : static_cast<double>(*number);
  return std::clamp(value, range.low, range.high);
}

std::optional<double> typing(Ui& ui, const std::string& name, const Box& box, double value, const NumberRange& range,
                             NumberEntry& entry) {
  TextFieldLook look;
  look.align = TextAlign::kRight;
  look.text_size = 13;
  const TextFieldResult result = text_field(ui, name, box.min, box.max, entry.field, look);
  const auto number = typed_value(entry.field.edit.text, range);
  // Another field may have taken the keyboard already: what was typed counts all the same.
  const bool left = result.left || ui.focus != name;
  if (left) entry.name.clear();
  if (left && !result.cancelled && number) {
    const double typed = static_cast<double>(*parse_float(entry.field.edit.text));
    if (typed < range.low || typed > range.high)
      entry.message = "From " + number_text(range.low, range.whole) + " to " + number_text(range.high, range.whole) +
                      ": the number is now " + number_text(*number, range.whole);
  }
  return left && !result.cancelled && number && *number != value ? number : std::nullopt;
}

std::optional<double> scrubbing(double value, const NumberRange& range, NumberEntry& entry) {
  const ImGuiIO& io = ImGui::GetIO();
  entry.drag_value += io.MouseDelta.x / 8.0 * range.step * (io.KeyShift ? 10 : 1);
  double next = std::clamp(entry.drag_value, range.low, range.high);
  if (range.whole) next = std::round(next);
  if (next == value) return std::nullopt;
  return next;
}

}  // namespace

void heading(Ui& ui, std::string_view text) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_text(ui, ImGui::GetWindowDrawList(), FontRole::kCaps11, at, ui.colors().dim, text);
  ImGui::Dummy({ImGui::GetContentRegionAvail().x, 16});
}

void gap(float height) { ImGui::Dummy({1, height}); }

Box labelled_row(Ui& ui, std::string_view label, float width, float height) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x;
  draw_text_in(ui, ImGui::GetWindowDrawList(), FontRole::kText13, at, {at.x + room - width, at.y + height},
               ui.colors().dim, label, TextAlign::kLeft);
  ImGui::Dummy({room, height});
  return {{at.x + room - width, at.y}, {at.x + room, at.y + height}};
}

std::optional<double> number_field(Ui& ui, const std::string& name, const Box& box, double value,
                                   const NumberRange& range, NumberEntry& entry, std::string_view shown) {
  const ImVec2 after = ImGui::GetCursorScreenPos();
  std::optional<double> changed;
  if (entry.name == name) {
    changed = typing(ui, name, box, value, range, entry);
  } else {
    ImGui::SetCursorScreenPos(box.min);
    ImGui::InvisibleButton(name.c_str(), {box.max.x - box.min.x, box.max.y - box.min.y});
    ui.widgets->add(name, box.min, box.max);
    const bool hovered = ImGui::IsItemHovered(), active = ImGui::IsItemActive();
    if (hovered || active) ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
    if (ImGui::IsItemActivated()) entry.drag_value = value;
    if (active && ImGui::IsMouseDragging(0, 3)) {
      changed = scrubbing(value, range, entry);
    } else if (ImGui::IsItemDeactivated() && ImGui::GetIO().MouseDragMaxDistanceSqr[0] < 9 && hovered) {
      entry.name = name;
      entry.field.edit.set(number_text(value, range.whole));
      entry.field.edit.select_all();
      focus_text_field(ui, name, entry.field);
    }
    field_frame(ui, ImGui::GetWindowDrawList(), box, hovered, active);
    std::string text = shown.empty() ? number_text(value, range.whole) : std::string(shown);
    if (text_width(ui, FontRole::kText13, text) > box.max.x - box.min.x - 16) text = format_value(value, 4);
    draw_text_in(ui, ImGui::GetWindowDrawList(), FontRole::kText13, box.min, {box.max.x - 10, box.max.y},
                 ui.colors().text, text, TextAlign::kRight);
  }
  ImGui::SetCursorScreenPos(after);
  return changed;
}

std::optional<int> choice_field(Ui& ui, const std::string& name, const Box& box, std::span<const Choice> choices,
                                int current) {
  const ImVec2 after = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  ImGui::SetCursorScreenPos(box.min);
  const std::string popup = name + "/list";
  if (ImGui::InvisibleButton(name.c_str(), {box.max.x - box.min.x, box.max.y - box.min.y}))
    ImGui::OpenPopup(popup.c_str());
  ui.widgets->add(name, box.min, box.max);
  field_frame(ui, list, box, ImGui::IsItemHovered(), ImGui::IsPopupOpen(popup.c_str()));
  const bool known = current >= 0 && current < static_cast<int>(choices.size());
  const std::string_view text = known ? choices[static_cast<std::size_t>(current)].text : "–";
  const ImVec2 from{box.min.x + 10, box.min.y}, to{box.max.x - 24, box.max.y};
  draw_text_in(ui, list, FontRole::kText13, from, to, ui.colors().text,
               end_that_fits(ui, FontRole::kText13, text, to.x - from.x), TextAlign::kRight);
  const ImVec2 c{box.max.x - 14, (box.min.y + box.max.y) / 2};
  const ImVec2 chevron[] = {{c.x - 3.5f, c.y - 1.5f}, {c.x, c.y + 2}, {c.x + 3.5f, c.y - 1.5f}};
  list->AddPolyline(chevron, 3, to_u32(ui.colors().dim), 0, 1.2f);

  std::optional<int> picked;
  // Above the box where there is more room for the list, which scrolls where even that is too little.
  const float list_height = std::min(28 * static_cast<float>(choices.size()) + 16, kLongestList);
  const float room_above = box.min.y - 8, room_below = ImGui::GetIO().DisplaySize.y - box.max.y - 8;
  const bool above = list_height > room_below && room_above > room_below;
  ImGui::SetNextWindowPos({box.max.x, above ? box.min.y - 4 : box.max.y + 4}, ImGuiCond_Always,
                          {1, above ? 1.0f : 0.0f});
  ImGui::SetNextWindowSizeConstraints({0, 0}, {FLT_MAX, std::min(kLongestList, above ? room_above : room_below)});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {6, 6});
  if (ImGui::BeginPopup(popup.c_str())) {
    if (take_escape(ui)) ImGui::CloseCurrentPopup();
    // The arrows walk over the list, from the current choice on.
    int* lit = ImGui::GetStateStorage()->GetIntRef(ImGui::GetID("lit"), current);
    if (ImGui::IsWindowAppearing()) *lit = current;
    const int count = static_cast<int>(choices.size());
    if (key_pressed(Key::kDown)) *lit = (*lit + 1) % count;
    if (key_pressed(Key::kUp)) *lit = (std::max(*lit, 0) + count - 1) % count;
    const bool shows_lit = ImGui::IsWindowAppearing() || key_pressed(Key::kDown) || key_pressed(Key::kUp);
    if (enter_pressed() && *lit >= 0) {
      picked = *lit;
      ImGui::CloseCurrentPopup();
    }
    float width = box.max.x - box.min.x - 12;
    for (const Choice& choice : choices)
      width = std::max(width, text_width(ui, FontRole::kText13, choice.text) +
                                  (choice.detail.empty() ? 0 : label_width(ui, choice.detail, 11)) + 36);
    for (int i = 0; i < static_cast<int>(choices.size()); ++i) {
      const Choice& choice = choices[static_cast<std::size_t>(i)];
      const ImVec2 at = ImGui::GetCursorScreenPos();
      const std::string row = name + "/" + std::string(choice.text);
      if (ImGui::InvisibleButton(row.c_str(), {width, 28})) {
        picked = i;
        ImGui::CloseCurrentPopup();
      }
      ui.widgets->add(row, at, {at.x + width, at.y + 28});
      ImDrawList* popup_list = ImGui::GetWindowDrawList();
      if (ImGui::IsItemHovered() || i == *lit)
        popup_list->AddRectFilled(at, {at.x + width, at.y + 28}, to_u32(ui.colors().accent_soft), 5);
      draw_text_in(ui, popup_list, FontRole::kText13, {at.x + 8, at.y}, {at.x + width, at.y + 28},
                   i == current ? ui.colors().accent : ui.colors().text, choice.text, TextAlign::kLeft);
      draw_label_in(ui, popup_list, at, {at.x + width - 8, at.y + 28}, choice.detail, 11, ui.colors().dim,
                    TextAlign::kRight);
      if (shows_lit && i == *lit) ImGui::SetScrollHereY();
      ImGui::SetCursorScreenPos({at.x, at.y + 28});
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
  ImGui::SetCursorScreenPos(after);
  return picked;
}

std::optional<int> segmented(Ui& ui, const std::string& name, std::span<const Choice> segments, int current) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x, height = 30;
  const float width = (room - 6) / static_cast<float>(segments.size());
  list->AddRectFilled(at, {at.x + room, at.y + height}, to_u32(ui.colors().field), 8);
  std::optional<int> picked;
  for (int i = 0; i < static_cast<int>(segments.size()); ++i) {
    const Box box{{at.x + 3 + width * static_cast<float>(i), at.y + 3},
                  {at.x + 3 + width * static_cast<float>(i + 1), at.y + height - 3}};
    ImGui::SetCursorScreenPos(box.min);
    const std::string id = name + "/" + std::to_string(i);
    if (ImGui::InvisibleButton(id.c_str(), {width, height - 6}) && i != current) picked = i;
    ui.widgets->add(id, box.min, box.max);
    if (i == current) {
      list->AddRectFilled(box.min, box.max, to_u32(ui.colors().panel), 6);
      list->AddRect(box.min, box.max, to_u32(ui.colors().line), 6, 0, 1);
    }
    const bool lit = i == current || ImGui::IsItemHovered();
    draw_text_in(ui, list, FontRole::kText13, box.min, box.max, lit ? ui.colors().text : ui.colors().dim,
                 segments[static_cast<std::size_t>(i)].text, TextAlign::kCenter);
  }
  ImGui::SetCursorScreenPos(at);
  ImGui::Dummy({room, height});
  return picked;
}

std::optional<double> log_slider(Ui& ui, const std::string& name, const Box& box, double value,
                                 const SliderRange& range) {
  constexpr float kKnob = 7, kSnap = 5;
  const ImVec2 after = ImGui::GetCursorScreenPos();
  const float x0 = box.min.x + kKnob, x1 = box.max.x - kKnob, y = std::round((box.min.y + box.max.y) / 2);
  const double logs = std::log(range.high / range.low);
  const auto x_of = [&](double v) {
    return x0 + static_cast<float>(std::log(std::clamp(v, range.low, range.high) / range.low) / logs) * (x1 - x0);
  };
  ImGui::SetCursorScreenPos(box.min);
  ImGui::InvisibleButton(name.c_str(), {box.max.x - box.min.x, box.max.y - box.min.y});
  ui.widgets->add(name, box.min, box.max);
  const bool hovered = ImGui::IsItemHovered(), active = ImGui::IsItemActive();
  std::optional<double> changed;
  if (active) {
    const float x = std::clamp(ImGui::GetIO().MousePos.x, x0, x1);
    double next = range.low * std::exp(logs * static_cast<double>((x - x0) / (x1 - x0)));
    const double unit = std::pow(10.0, std::floor(std::log10(next)) - 2);
    next = std::clamp(std::round(next / unit) * unit, range.low, range.high);
    if (std::abs(x - x_of(range.home)) <= kSnap) next = range.home;
    if (next != value) changed = next;
  }
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float home = x_of(range.home), knob = x_of(value);
  list->AddRectFilled({x0, y - 1.5f}, {x1, y + 1.5f}, to_u32(mix(ui.colors().line, ui.colors().faint, 0.35)), 1.5f);
  list->AddRectFilled({std::min(home, knob), y - 1.5f}, {std::max(home, knob), y + 1.5f}, to_u32(ui.colors().accent));
  list->AddLine({home, y - 5}, {home, y + 5}, to_u32(ui.colors().faint), 1);
  list->AddCircleFilled({knob, y}, kKnob, to_u32(active || hovered ? ui.colors().accent : ui.colors().panel), 24);
  list->AddCircle({knob, y}, kKnob - 0.75f, to_u32(ui.colors().accent), 24, 1.5f);
  ImGui::SetCursorScreenPos(after);
  return changed;
}

bool switch_field(Ui& ui, const std::string& name, const Box& box, bool on) {
  const ImVec2 after = ImGui::GetCursorScreenPos();
  const float width = 34, height = 18;
  const ImVec2 min{box.max.x - width, (box.min.y + box.max.y - height) / 2};
  ImGui::SetCursorScreenPos(min);
  const bool clicked = ImGui::InvisibleButton(name.c_str(), {width, height});
  ui.widgets->add(name, min, {min.x + width, min.y + height});
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Color track = on ? ui.colors().accent : mix(ui.colors().line, ui.colors().faint, 0.35);
  list->AddRectFilled(min, {min.x + width, min.y + height}, to_u32(track), height / 2);
  const float knob = on ? min.x + width - height / 2 : min.x + height / 2;
  list->AddCircleFilled({knob, min.y + height / 2}, height / 2 - 2.5f, to_u32({255, 255, 255, 255}), 24);
  ImGui::SetCursorScreenPos(after);
  return clicked;
}

bool text_button(Ui& ui, const std::string& name, const Box& box, std::string_view text, bool primary, bool enabled) {
  const ImVec2 after = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos(box.min);
  const bool clicked = ImGui::InvisibleButton(name.c_str(), {box.max.x - box.min.x, box.max.y - box.min.y});
  ui.widgets->add(name, box.min, box.max);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const bool hovered = ImGui::IsItemHovered() && enabled;
  Color fill = primary ? ui.colors().accent : ui.colors().field;
  if (hovered) fill = mix(fill, ui.colors().text, 0.08);
  if (!enabled) fill = mix(ui.colors().panel, fill, 0.5);
  list->AddRectFilled(box.min, box.max, to_u32(fill), 6);
  if (!primary) list->AddRect(box.min, box.max, to_u32(ui.colors().line), 6, 0, 1);
  const Color on_accent = enabled ? ink_on(fill) : mix(fill, ink_on(fill), 0.6);
  const Color ink = primary ? on_accent : enabled ? ui.colors().text : ui.colors().faint;
  draw_text_in(ui, list, FontRole::kText13, box.min, box.max, ink, text, TextAlign::kCenter);
  ImGui::SetCursorScreenPos(after);
  return clicked && enabled;
}

void value_bar(const Ui& ui, ImDrawList* list, ImVec2 from, float length, Color color) {
  const float height = 8;
  const float width = std::max(std::abs(length), 2.0f);
  const float x = length < 0 ? from.x - width : from.x;
  const ImVec2 min = snap(ui, {x, from.y - height / 2});
  list->AddRectFilled(min, {min.x + width, min.y + height}, to_u32(color), std::min(height, width) / 2);
}

}  // namespace qkv
