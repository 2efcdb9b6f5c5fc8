// A colour bar with its ends below.
#pragma once

#include <optional>
#include <string>

#include "app/ui/ui.h"
#include "core/figure/range.h"

namespace qkv {

inline constexpr float kColorBarHeight = 28;  // with the numbers

struct ColorBar {
  const std::string& colormap;
  ColorRange range;
  std::optional<float> mark;  // a value that it points at
  float factor = 1;           // what the numbers are multiplied by before they are written
};

// A range of one value says so; "log" stands between the ends of a logarithmic one.
void draw_bar(Ui& ui, ImVec2 at, float width, ColorBar bar, int decimals);

}  // namespace qkv
