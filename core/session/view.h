// How a session is looked at: saved with it, outside undo.
#pragma once

#include <string>

namespace qkv {

enum class Tab { kHead, kHeads, kConcat, kProjection };

// How values become the ends of a colour scale.
enum class RangeMode {
  kUnit,       // 0 … 1
  kAuto,       // smallest … largest finite value
  kSymmetric,  // −m … m with m the largest finite magnitude
  kCustom,     // as given
};

struct RangeSpec {
  RangeMode mode = RangeMode::kAuto;
  float low = 0, high = 1;  // for kCustom, low < high
  bool operator==(const RangeSpec&) const = default;
};

struct ViewSettings {
  Tab tab = Tab::kHead;
  int head = 0;                         // the head that One head shows
  std::string weights_map = "viridis";  // names of core/figure/colormap.h
  std::string signed_map = "blue-orange";
  RangeSpec weights_range = {RangeMode::kUnit, 0, 1};       // attn
  RangeSpec signed_range = {RangeMode::kSymmetric, -1, 1};  // every other matrix
  int decimals = 3;                                         // digits in cells, 0 … 6
  bool operator==(const ViewSettings&) const = default;
};

// "head", "heads", "concat", "projection" and back; "unit", "auto", "symmetric", "custom" and back are in
// session_file.cpp.
const char* tab_name(Tab tab);

}  // namespace qkv
