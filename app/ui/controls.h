// The controls of the panels: headings, rows with a value at the right, choices, switches, buttons.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "app/ui/text_field.h"
#include "app/ui/ui.h"

namespace qkv {

// Controls take the width of the current ImGui window's content and move its cursor down, on a 4-px grid.

// The field that is being typed into, shared by all number fields of a panel: at most one is open.
struct NumberEntry {
  std::string name;  // widget that is open; empty = none
  TextFieldState field;
  double drag_value = 0;  // while scrubbing
  std::uint64_t gesture = 0;
  std::string message;  // what became of a number beyond its range; the panel passes it on
};

void heading(Ui& ui, std::string_view text);  // small capitals; `text` is given in capitals
void gap(float height);

// A dim label at the left and what follows at the right; returns the box for it. `width` of the box.
struct Box {
  ImVec2 min, max;
};
Box labelled_row(Ui& ui, std::string_view label, float width, float height = 28);

struct NumberRange {
  double low = 0, high = 1;
  double step = 1;  // of scrubbing, per 8 pixels
  bool whole = true;
};
// Click to type, drag to scrub. The new value when it changed; values are clamped to the range.
// `shown` replaces the number while nobody types ("1/√dₖ").
std::optional<double> number_field(Ui& ui, const std::string& name, const Box& box, double value,
                                   const NumberRange& range, NumberEntry& entry, std::string_view shown = {});

struct Choice {
  std::string_view text;
  std::string_view detail = {};  // dim, behind the text
};
// A box that opens a list; the index that was picked.
std::optional<int> choice_field(Ui& ui, const std::string& name, const Box& box, std::span<const Choice> choices,
                                int current);

// Segments side by side over the whole width.
std::optional<int> segmented(Ui& ui, const std::string& name, std::span<const Choice> segments, int current);

// A slider from `low` to `high`, both above 0, each as far from `home` in factors as the knob is in pixels. Near the
// tick of `home` it snaps there. The new value, of three significant digits, while it is dragged.
struct SliderRange {
  double low = 0.01, high = 100, home = 1;
};
std::optional<double> log_slider(Ui& ui, const std::string& name, const Box& box, double value,
                                 const SliderRange& range);

// True when clicked.
bool switch_field(Ui& ui, const std::string& name, const Box& box, bool on);
bool text_button(Ui& ui, const std::string& name, const Box& box, std::string_view text, bool primary = false,
                 bool enabled = true);

// A thin bar from 0 at `from` to value, for shares and signed parts.
void value_bar(const Ui& ui, ImDrawList* list, ImVec2 from, float length, Color color);

}  // namespace qkv
