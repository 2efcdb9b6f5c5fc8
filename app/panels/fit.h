// Sharing a length among axes: how large a cell may be so that everything fits.
#pragma once

#include <span>

#include "core/attention/matrix.h"

namespace qkv {

inline constexpr float kLargestCell = 48;   // logical pixels
inline constexpr float kSmallestSide = 88;  // an axis with many entries is not drawn shorter, where there is room

// Length of an axis of `count` entries when a cell measures `cell`: short axes may be no longer than
// count · kLargestCell, long ones no shorter than kSmallestSide.
float axis_length(Index count, double cell);

// The largest cell size, at most kLargestCell, with which the axes' lengths add up to no more than `room`.
// Every count may stand several times. At least a sliver when nothing fits.
double fit_cell(std::span<const Index> counts, float room);

}  // namespace qkv
