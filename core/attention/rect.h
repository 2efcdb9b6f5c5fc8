// Counts of rows and columns, and blocks of cells.
#pragma once

#include <cstddef>

namespace qkv {

// The same type as Eigen::Index, for files that do without Eigen.
using Index = std::ptrdiff_t;

// A block of cells: `rows` × `cols` from (`row`, `col`).
struct Rect {
  Index row = 0, col = 0, rows = 0, cols = 0;
  bool contains(Index r, Index c) const { return r >= row && r < row + rows && c >= col && c < col + cols; }
  bool operator==(const Rect&) const = default;
};

}  // namespace qkv
