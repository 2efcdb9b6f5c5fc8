// Sharing a length among axes: how large a cell may be so that everything fits.
#pragma once

#include <span>

#include "core/attention/matrix.h"

namespace qkv {

inline constexpr float kLargestCell = 48;   // logical pixels
inline constexpr float kSmallestSide = 88;  // an axis with many entries is not drawn shorter, where there is room

// How axes share a length: `cell` per entry, but short axes keep a readable size, and all shrink together where even
// that is too much.
struct AxisFit {
  double cell = 0;
  double shrink = 1;
  float length(Index count) const;
};

// The largest cell size, at most kLargestCell, with which the axes' lengths add up to no more than `room`.
// A count may stand several times.
AxisFit fit_axes(std::span<const Index> counts, float room);

// The cells of one matrix in a room: squares of at most `most`, but the few rows or columns beside very many are as
// high as a line of text, or as the room allows.
struct CellSize {
  double w = 0, h = 0;
};
CellSize fit_cells(Index rows, Index cols, float room_w, float room_h, double most);

// Makes cells that can carry numbers squares, as on paper; smaller ones use the room they have, within reason.
void square_cells(AxisFit& across, AxisFit& down);

}  // namespace qkv
