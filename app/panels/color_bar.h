// A colour bar with its ends below.
#pragma once

#include <optional>
#include <string>

#include "app/ui/ui.h"
#include "core/figure/range.h"

namespace qkv {

inline constexpr float kColorBarHeight = 28;  // with the numbers

// `mark` points at a value. A range of one value says so; "log" stands between the ends of a logarithmic one.
void draw_bar(Ui& ui, ImVec2 at, float width, const std::string& colormap, const ColorRange& range,
              std::optional<float> mark, int decimals);

}  // namespace qkv
