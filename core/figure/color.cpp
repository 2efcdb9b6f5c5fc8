#include "core/figure/color.h"

#include <array>
#include <cmath>

namespace qkv {
namespace {

constexpr Color hex(std::uint32_t rgb) {
  return {static_cast<std::uint8_t>(rgb >> 16), static_cast<std::uint8_t>(rgb >> 8), static_cast<std::uint8_t>(rgb),
          255};
}

constexpr Color kDarkInk = hex(0x1f2328);
constexpr Color kLightInk = hex(0xffffff);

constexpr Palette kLight = {
    .stage = hex(0xf6f6f4),
    .panel = hex(0xffffff),
    .line = hex(0xe3e2de),
    .text = hex(0x1f2328),
    .dim = hex(0x6b7078),
    .faint = hex(0xa3a7ad),
    .accent = hex(0x2f6fde),
    .accent_soft = hex(0xe6eefc),
    .field = hex(0xf6f6f4),
    .good = hex(0x1f8a4c),
    .warning = hex(0xa86400),
    .bad = hex(0xc8323c),
    .masked = hex(0xebebe8),
    .masked_line = hex(0xcfcfca),
    .nan_cell = hex(0xd6249f),
    .nan_ink = hex(0xffffff),
    .signed_low = hex(0x2166ac),
    .signed_zero = hex(0xfbfbfa),
    .signed_high = hex(0xc4501b),
};

constexpr Palette kDark = {
    .stage = hex(0x16181c),
    .panel = hex(0x1e2126),
    .line = hex(0x2c3037),
    .text = hex(0xe6e8eb),
    .dim = hex(0x9aa0a8),
    .faint = hex(0x646a73),
    .accent = hex(0x6ea2ff),
    .accent_soft = hex(0x24324c),
    .field = hex(0x16181c),
    .good = hex(0x4cb878),
    .warning = hex(0xe0a03c),
    .bad = hex(0xf0686e),
    .masked = hex(0x1b1d22),
    .masked_line = hex(0x363b43),
    .nan_cell = hex(0xe83fb4),
    .nan_ink = hex(0x1f2328),
    .signed_low = hex(0x4c9be8),
    .signed_zero = hex(0x2a2e35),
    .signed_high = hex(0xf0954a),
};

constexpr std::array kHeads = {hex(0x0072b2), hex(0xe69f00), hex(0x009e73), hex(0xcc79a7),
                               hex(0x56b4e9), hex(0xd55e00), hex(0x8c7ae6), hex(0xb8a300)};

std::uint8_t mix_channel(std::uint8_t a, std::uint8_t b, double t) {
  return static_cast<std::uint8_t>(std::lround(a + (b - a) * t));
}

}  // namespace

double linear_channel(std::uint8_t channel) {
  const double c = channel / 255.0;
  return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

double luminance(Color color) {
  return 0.2126 * linear_channel(color.r) + 0.7152 * linear_channel(color.g) + 0.0722 * linear_channel(color.b);
}

double contrast(Color a, Color b) {
  const double la = luminance(a), lb = luminance(b);
  return (std::fmax(la, lb) + 0.05) / (std::fmin(la, lb) + 0.05);
}

Color ink_on(Color cell) { return contrast(cell, kDarkInk) >= contrast(cell, kLightInk) ? kDarkInk : kLightInk; }

Color mix(Color a, Color b, double t) {
  t = std::fmin(std::fmax(t, 0.0), 1.0);
  return {mix_channel(a.r, b.r, t), mix_channel(a.g, b.g, t), mix_channel(a.b, b.b, t), mix_channel(a.a, b.a, t)};
}

std::optional<ThemeName> theme_from_name(std::string_view name) {
  if (name == "light") return ThemeName::kLight;
  if (name == "dark") return ThemeName::kDark;
  return std::nullopt;
}

const Palette& palette(ThemeName theme) { return theme == ThemeName::kDark ? kDark : kLight; }

Color head_color(int head) { return kHeads[static_cast<std::size_t>(head < 0 ? 0 : head) % kHeads.size()]; }

}  // namespace qkv
