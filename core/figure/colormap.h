// Colour maps: values in 0 … 1 to sRGB, the same table for the window, figures and tests.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "core/figure/color.h"

namespace qkv {

// 256 entries; entry i stands for values in [i/256, (i+1)/256), and 1 for the last.
using ColorTable = std::array<Color, 256>;

struct ColormapInfo {
  std::string_view name;   // "viridis"
  bool diverging = false;  // has a middle: for signed values
};

// viridis, cividis, magma, grey (sequential), blue-orange (diverging, theme-dependent), purple-green (diverging).
std::span<const ColormapInfo> colormaps();
bool is_colormap(std::string_view name);

// `name` must be one of colormaps(). The diverging maps take the theme's colours.
ColorTable color_table(std::string_view name, ThemeName theme);

// Index of `t` in a table: floor(t·256), clamped to 0 … 255. NaN is not for this function.
int table_index(double t);

}  // namespace qkv
