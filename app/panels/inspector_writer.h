// What the inspector is written with: lines, pairs, bars, one below the other.
#pragma once

#include <string>
#include <string_view>

#include "app/panels/stage.h"

namespace qkv {

// Writes down the current ImGui child window.
class InspectorWriter {
 public:
  InspectorWriter(Ui& ui, const StageInput& in);

  Ui& ui() { return ui_; }
  int decimals() const { return in_.session.view.decimals; }
  std::string number(double value) const;
  // A factor of a product: whole numbers as people write them.
  std::string factor(double value) const;
  std::string token(Axis axis, Index index) const { return shown_names(in_, axis, index + 1)[index]; }

  void space(float height) { ImGui::Dummy({1, height}); }
  void caps(const std::string& text);
  void section(std::string_view text);
  void big(const std::string& text);
  // Lines of the text become paragraphs with a little air between them.
  void paragraph(std::string_view text);
  // A token at the left, something in the middle, a number at the right.
  void row(const std::string& left, const std::string& middle, const std::string& right, Color ink, bool bold = false);
  void pair(const std::string& left, const std::string& right);
  void rule();
  // A bar for a share of `most`; signed bars start in the middle.
  void bar(const std::string& left, double value, double most, bool is_signed, Color color, const std::string& right);
  void dot_bar(int head, double value, double most, bool is_signed, const std::string& right);

 private:
  Ui& ui_;
  const StageInput& in_;
  ImDrawList* list_;
  float width_ = 0;
};

}  // namespace qkv
