#include "app/ui/ui.h"

#include <algorithm>
#include <cmath>

#include "app/ui/keys.h"
#include "core/base/utf8.h"

namespace qkv {

const ColorTable& Ui::table(const std::string& colormap) {
  const std::string name = is_colormap(colormap) ? colormap : "viridis";
  const auto [it, is_new] = color_tables.try_emplace({name, theme});
  if (is_new) it->second = color_table(name, theme);
  return it->second;
}

bool take_escape(Ui& ui) {
  if (ui.escape_taken || !key_pressed(Key::kEscape, false)) return false;
  ui.escape_taken = true;
  return true;
}

ImVec2 snap(const Ui& ui, ImVec2 p) {
  return {std::round(p.x * ui.scale) / ui.scale, std::round(p.y * ui.scale) / ui.scale};
}

float text_width(const Ui& ui, FontRole role, std::string_view text) {
  if (text.empty()) return 0;
  const ImFont* font = ui.fonts->get(role);
  return font->CalcTextSizeA(FontSet::size(role), 1e9f, 0, text.data(), text.data() + text.size()).x;
}

void draw_text(const Ui& ui, ImDrawList* list, FontRole role, ImVec2 pos, Color color, std::string_view text) {
  if (text.empty()) return;  // ImGui measures an empty range as a C string
  list->AddText(ui.fonts->get(role), FontSet::size(role), snap(ui, pos), to_u32(color), text.data(),
                text.data() + text.size());
}

void draw_text_in(const Ui& ui, ImDrawList* list, FontRole role, ImVec2 min, ImVec2 max, Color color,
                  std::string_view text, TextAlign align) {
  const float width = text_width(ui, role, text);
  float x = min.x;
  if (align == TextAlign::kCenter) x = (min.x + max.x - width) / 2;
  if (align == TextAlign::kRight) x = max.x - width;
  draw_text(ui, list, role, {x, (min.y + max.y - FontSet::size(role)) / 2}, color, text);
}

namespace {

// `list` may be nullptr: then only the width is worked out.
float formula(const Ui& ui, ImDrawList* list, FontRole role, ImVec2 pos, Color color, std::string_view text) {
  constexpr float kRaise = 2;
  float x = pos.x;
  while (!text.empty()) {
    const std::size_t hat = std::min(text.find('^'), text.size());
    if (list != nullptr) draw_text(ui, list, role, {x, pos.y}, color, text.substr(0, hat));
    x += text_width(ui, role, text.substr(0, hat));
    text.remove_prefix(hat);
    if (text.size() < 2) break;
    std::size_t end = 1;
    next_code_point(text, end);
    const std::string_view raised = text.substr(1, end - 1);
    if (list != nullptr) draw_text(ui, list, FontRole::kSmall11, {x + 0.5f, pos.y - kRaise}, color, raised);
    x += text_width(ui, FontRole::kSmall11, raised) + 1;
    text.remove_prefix(end);
  }
  return x - pos.x;
}

}  // namespace

float draw_formula(const Ui& ui, ImDrawList* list, FontRole role, ImVec2 pos, Color color, std::string_view text) {
  return formula(ui, list, role, pos, color, text);
}

float formula_width(const Ui& ui, FontRole role, std::string_view text) {
  return formula(ui, nullptr, role, {0, 0}, {}, text);
}

float draw_paragraph(const Ui& ui, ImDrawList* list, FontRole role, ImVec2 pos, float width, Color color,
                     std::string_view text) {
  const float line = std::round(FontSet::size(role) * 1.45f);
  float y = pos.y;
  std::size_t start = 0;
  while (start < text.size()) {
    std::size_t end = start, last_fit = start;
    while (end < text.size()) {
      std::size_t word_end = text.find_first_of(" \n", end);
      if (word_end == std::string_view::npos) word_end = text.size();
      if (last_fit > start && text_width(ui, role, text.substr(start, word_end - start)) > width) break;
      last_fit = word_end;
      if (word_end < text.size() && text[word_end] == '\n') break;
      end = word_end + 1;
    }
    draw_text(ui, list, role, {pos.x, y}, color, text.substr(start, last_fit - start));
    y += line;
    start = last_fit + 1;
  }
  return y - pos.y;
}

void draw_label_in(Ui& ui, ImDrawList* list, ImVec2 min, ImVec2 max, std::string_view text, double size, Color color,
                   TextAlign align, bool bold) {
  if (text.empty()) return;
  TextStyle style{size, bold, color, 0};
  const double room = max.x - min.x;
  if (ui.labels->measure(text, style).width > room) style.max_width = std::floor(room);
  const Label& label = ui.labels->get(text, style);
  if (label.texture_size.x <= 0) return;
  const float width = static_cast<float>(label.size.width), height = static_cast<float>(label.size.height);
  float x = min.x;
  if (align == TextAlign::kCenter) x = (min.x + max.x - width) / 2;
  if (align == TextAlign::kRight) x = max.x - width;
  const ImVec2 at = snap(ui, {x, (min.y + max.y - height) / 2});
  list->AddImage(label.texture, at, {at.x + label.texture_size.x, at.y + label.texture_size.y});
}

float label_width(Ui& ui, std::string_view text, double size, bool bold) {
  return static_cast<float>(ui.labels->measure(text, {size, bold, ui.colors().text, 0}).width);
}

float draw_label_paragraph(Ui& ui, ImDrawList* list, ImVec2 pos, float width, std::string_view text, double size,
                           Color color) {
  const float line = static_cast<float>(std::round(size * 1.5));
  float y = pos.y;
  std::string current;
  const auto flush = [&] {
    draw_label_in(ui, list, {pos.x, y}, {pos.x + width, y + line}, current, size, color, TextAlign::kLeft);
    y += line;
    current.clear();
  };
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t end = at;
    while (end < text.size()) {  // one unbreakable piece: a word with its spaces, or one CJK character
      const char32_t c = next_code_point(text, end);
      std::size_t peek = end;
      const char32_t next = end < text.size() ? next_code_point(text, peek) : U' ';
      if (c == U'\n' || (is_cjk(c) && !joins_previous(next)) || (c == U' ' && next != U' ') || is_cjk(next)) break;
    }
    const std::string_view piece = text.substr(at, end - at);
    const bool newline = piece.back() == '\n';
    const std::string_view shown = newline ? piece.substr(0, piece.size() - 1) : piece;
    if (!current.empty() && label_width(ui, current + std::string(shown), size) > width) flush();
    current += shown;
    if (newline) flush();
    at = end;
  }
  if (!current.empty()) flush();
  return y - pos.y;
}

void apply_style(ThemeName theme) {
  const Palette& p = palette(theme);
  ImGuiStyle& style = ImGui::GetStyle();
  style = ImGuiStyle();
  style.WindowPadding = {8, 8};
  style.FramePadding = {10, 6};
  style.ItemSpacing = {8, 8};
  style.ItemInnerSpacing = {8, 4};
  style.WindowRounding = 0;
  style.ChildRounding = 0;
  style.FrameRounding = 6;
  style.PopupRounding = 8;
  style.ScrollbarSize = 10;
  style.ScrollbarRounding = 5;
  style.GrabRounding = 4;
  style.WindowBorderSize = 0;
  style.ChildBorderSize = 0;
  style.FrameBorderSize = 0;
  style.PopupBorderSize = 1;
  const auto set = [&](ImGuiCol slot, Color color) {
    style.Colors[slot] = ImGui::ColorConvertU32ToFloat4(to_u32(color));
  };
  set(ImGuiCol_Text, p.text);
  set(ImGuiCol_TextDisabled, p.faint);
  set(ImGuiCol_WindowBg, p.stage);
  set(ImGuiCol_ChildBg, {0, 0, 0, 0});
  set(ImGuiCol_PopupBg, p.panel);
  set(ImGuiCol_Border, p.line);
  set(ImGuiCol_MenuBarBg, p.panel);
  set(ImGuiCol_FrameBg, p.field);
  set(ImGuiCol_FrameBgHovered, p.field);
  set(ImGuiCol_FrameBgActive, p.field);
  set(ImGuiCol_Header, p.accent_soft);
  set(ImGuiCol_HeaderHovered, p.accent_soft);
  set(ImGuiCol_HeaderActive, p.accent_soft);
  set(ImGuiCol_Button, p.field);
  set(ImGuiCol_ButtonHovered, p.accent_soft);
  set(ImGuiCol_ButtonActive, p.accent_soft);
  set(ImGuiCol_Separator, p.line);
  set(ImGuiCol_CheckMark, p.accent);
  set(ImGuiCol_ScrollbarBg, {0, 0, 0, 0});
  set(ImGuiCol_ScrollbarGrab, p.line);
  set(ImGuiCol_ScrollbarGrabHovered, p.faint);
  set(ImGuiCol_ScrollbarGrabActive, p.dim);
  set(ImGuiCol_ModalWindowDimBg, {0, 0, 0, 90});
  set(ImGuiCol_NavHighlight, {0, 0, 0, 0});
}

void tooltip(Ui& ui, std::string_view text) {
  if (!ImGui::IsItemHovered() || ImGui::IsMouseDown(0)) return;
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {10, 8});
  ImGui::BeginTooltip();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = std::min(280.0f, label_width(ui, text, 13) + 4);
  const float height = draw_label_paragraph(ui, ImGui::GetWindowDrawList(), at, width, text, 13, ui.colors().text);
  ImGui::Dummy({width, height});
  ImGui::EndTooltip();
  ImGui::PopStyleVar();
}

}  // namespace qkv
