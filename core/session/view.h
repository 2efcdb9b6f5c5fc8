// How a session is looked at: saved with it, outside undo.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "core/attention/number_format.h"

namespace qkv {

enum class Tab { kHead, kHeads, kConcat, kProjection };

// How values become the ends of a colour scale.
enum class RangeMode {
  kUnit,       // 0 … 1
  kAuto,       // smallest … largest finite value
  kSymmetric,  // −m … m with m the largest finite magnitude
  kCustom,     // as given
  kLog,        // logarithmic, from a small share of the largest value to that: for weights
};

struct RangeSpec {
  RangeMode mode = RangeMode::kAuto;
  float low = 0, high = 1;  // for kCustom, low < high
  bool operator==(const RangeSpec&) const = default;
};

// What the cells of every matrix show: its values, the gradient by it, or what a number format changes in it.
enum class Lens { kValues, kGradient, kFloat32, kBfloat16, kFloat16 };
inline constexpr std::array kAllLenses = {Lens::kValues, Lens::kGradient, Lens::kFloat32, Lens::kBfloat16,
                                          Lens::kFloat16};

struct ViewSettings {
  Tab tab = Tab::kHead;
  int head = 0;                         // the head that One head shows
  std::string weights_map = "viridis";  // names of core/figure/colormap.h
  std::string signed_map = "blue-orange";
  RangeSpec weights_range = {RangeMode::kUnit, 0, 1};       // attn
  RangeSpec signed_range = {RangeMode::kSymmetric, -1, 1};  // every other matrix
  int decimals = 3;                                         // digits in cells, 0 … 6
  Lens lens = Lens::kValues;
  bool raw_tokens = false;  // tokens as stored, not as core/session/token_text.h shows them
  bool operator==(const ViewSettings&) const = default;
};

// "head", "heads", "concat", "projection" and back; "unit", "auto", "symmetric", "custom" and back are in
// session_file.cpp.
const char* tab_name(Tab tab);

// "values", "gradient", "float32", "bfloat16", "float16".
std::string_view lens_name(Lens lens);
// The format that a lens compares with float64; nullopt for values and gradients.
std::optional<NumberFormat> lens_format(Lens lens);

}  // namespace qkv
