// From values to colours: the two ends of a scale, and what a cell outside them is.
#pragma once

#include "core/attention/matrix.h"
#include "core/figure/colormap.h"
#include "core/session/view.h"

namespace qkv {

// The ends of a colour scale; low < high unless flat.
struct ColorRange {
  float low = 0, high = 1;
  // All finite values are equal (or there is none): drawn in mid-scale, labelled with the value.
  bool flat = false;
  bool log = false;  // logarithmic, with 0 < low; 0 itself has the first entry of the colour table for its own
  bool operator==(const ColorRange&) const = default;

  // Position of `value` in 0 … 1; below 0 or above 1 where clipped; 0.5 where flat. Where log: 0 for 0, and
  // kLogStart … 1 for low … high.
  double position(float value) const;
};
inline constexpr double kLogStart = 1.0 / 256;

// Weights below this share of the largest are off a logarithmic scale.
inline constexpr float kLogShare = 1e-6F;

// Smallest and largest finite values of the visible cells (`keep` 1 = visible; without it all), or count 0.
struct FiniteExtent {
  float low = 0, high = 0;
  Index count = 0, nan = 0, infinite = 0;
  float positive = 0;  // the smallest finite value above 0; 0 where there is none or nobody looked
};
FiniteExtent finite_extent(ConstMatrixRef values);
FiniteExtent finite_extent(ConstMatrixRef values, ConstMatrixRef keep);

// The range that `spec` asks for over several extents (a grid of heads shares one).
ColorRange resolve_range(const RangeSpec& spec, const FiniteExtent& extent);
FiniteExtent merge(const FiniteExtent& a, const FiniteExtent& b);

enum class CellClass { kValue, kBelow, kAbove, kMasked, kNan, kPlusInf, kMinusInf };
CellClass classify(float value, bool visible, const ColorRange& range);

}  // namespace qkv
