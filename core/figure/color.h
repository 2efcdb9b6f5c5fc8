// Colours as sRGB bytes, the two themes, and the colours of heads.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace qkv {

struct Color {
  std::uint8_t r = 0, g = 0, b = 0, a = 255;
  bool operator==(const Color&) const = default;
};

// Linear light 0 … 1 of an sRGB channel (IEC 61966-2-1).
double linear_channel(std::uint8_t channel);
// Relative luminance 0 … 1 (WCAG 2).
double luminance(Color color);
// WCAG 2 contrast ratio 1 … 21.
double contrast(Color a, Color b);
// Digits on a cell: near-black or near-white, whichever contrasts more.
Color ink_on(Color cell);
Color mix(Color a, Color b, double t);  // t = 0 gives a

enum class ThemeName { kLight, kDark };
std::optional<ThemeName> theme_from_name(std::string_view name);

struct Palette {
  Color stage, panel, line;
  Color text, dim, faint;
  Color accent, accent_soft;
  Color field;                // inputs, chips
  Color good, warning, bad;   // status words
  Color masked, masked_line;  // hidden cells: fill and hatch
  Color nan_cell, nan_ink;    // NaN cells
  Color signed_low, signed_zero, signed_high;
};
const Palette& palette(ThemeName theme);

// Okabe–Ito order of the heads; repeats after eight (is_repeat() then adds a mark).
Color head_color(int head);
inline bool head_color_repeats(int head) { return head >= 8; }

}  // namespace qkv
