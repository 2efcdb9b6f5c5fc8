#include "app/panels/inspector_writer.h"

#include <algorithm>
#include <cmath>

#include "core/base/number_text.h"

namespace qkv {
namespace {

constexpr float kLine = 24;

}  // namespace

InspectorWriter::InspectorWriter(Ui& ui, const StageInput& in) : ui_(ui), in_(in), list_(ImGui::GetWindowDrawList()) {
  width_ = ImGui::GetContentRegionAvail().x;
}

std::string InspectorWriter::number(double value) const {
  return std::isfinite(value) && std::abs(value) < 1e6 ? format_fixed(value, decimals())
                                                       : format_value(value, decimals());
}

std::string InspectorWriter::factor(double value) const {
  return format_value(value, value == std::round(value) && std::abs(value) < 1e6 ? 0 : decimals());
}

void InspectorWriter::caps(const std::string& text) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = draw_label_paragraph(ui_, list_, {at.x, at.y - 2}, width_, text, 11, ui_.colors().dim);
  ImGui::Dummy({width_, height + 3});
}

void InspectorWriter::section(std::string_view text) {
  space(14);
  heading(ui_, text);
  space(2);
}

void InspectorWriter::big(const std::string& text) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_text(ui_, list_, FontRole::kValue26, at, ui_.colors().text, text);
  ImGui::Dummy({width_, 34});
}

void InspectorWriter::paragraph(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const float height = draw_label_paragraph(ui_, list_, ImGui::GetCursorScreenPos(), width_, text.substr(0, end), 13,
                                              ui_.colors().dim);
    text.remove_prefix(std::min(end + 1, text.size()));
    ImGui::Dummy({width_, height + (text.empty() ? 0 : 6)});
  }
}

void InspectorWriter::row(const std::string& left, const std::string& middle, const std::string& right, Color ink,
                          bool bold) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float left_width = std::min(84.0f, width_ * 0.32f);
  draw_label_in(ui_, list_, at, {at.x + left_width - 6, at.y + kLine}, left, 13, ui_.colors().dim, TextAlign::kLeft);
  const float right_width = text_width(ui_, bold ? FontRole::kBold13 : FontRole::kText13, right) + 8;
  draw_label_in(ui_, list_, {at.x + left_width, at.y}, {at.x + width_ - right_width, at.y + kLine}, middle, 13,
                ui_.colors().text, TextAlign::kLeft);
  draw_text_in(ui_, list_, bold ? FontRole::kBold13 : FontRole::kText13, at, {at.x + width_, at.y + kLine}, ink, right,
               TextAlign::kRight);
  ImGui::Dummy({width_, kLine});
}

void InspectorWriter::pair(const std::string& left, const std::string& right) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_text_in(ui_, list_, FontRole::kText13, at, {at.x + width_, at.y + kLine}, ui_.colors().dim, left,
               TextAlign::kLeft);
  const float used = text_width(ui_, FontRole::kText13, left) + 8;
  draw_label_in(ui_, list_, {at.x + used, at.y}, {at.x + width_, at.y + kLine}, right, 13, ui_.colors().text,
                TextAlign::kRight);
  ImGui::Dummy({width_, kLine});
}

void InspectorWriter::rule() {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  list_->AddLine({at.x, at.y + 4}, {at.x + width_, at.y + 4}, to_u32(ui_.colors().line));
  ImGui::Dummy({width_, 9});
}

void InspectorWriter::bar(const std::string& left, double value, double most, bool is_signed, Color color,
                          const std::string& right) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float left_width = std::min(72.0f, width_ * 0.28f), right_width = 64;
  draw_label_in(ui_, list_, at, {at.x + left_width - 6, at.y + kLine}, left, 13, ui_.colors().dim, TextAlign::kLeft);
  const float room = width_ - left_width - right_width;
  const float zero = at.x + left_width + (is_signed ? room / 2 : 0);
  const float full = is_signed ? room / 2 : room;
  if (std::isfinite(value) && value != 0 && most > 0)
    value_bar(ui_, list_, {zero, at.y + kLine / 2}, static_cast<float>(value / most) * full, color);
  draw_text_in(ui_, list_, FontRole::kText13, at, {at.x + width_, at.y + kLine}, ui_.colors().text, right,
               TextAlign::kRight);
  ImGui::Dummy({width_, kLine});
}

void InspectorWriter::dot_bar(int head, double value, double most, bool is_signed, const std::string& right) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  list_->AddCircleFilled({at.x + 4, at.y + kLine / 2}, 4, to_u32(head_color(head)), 20);
  if (head_color_repeats(head))
    list_->AddCircle({at.x + 4, at.y + kLine / 2}, 6.5f, to_u32(head_color(head)), 20, 1.2f);
  bar("     " + std::to_string(head + 1), value, most, is_signed, head_color(head), right);
}

}  // namespace qkv
