// A matrix seen from far: means and largest values of blocks, coarser level by level.
#pragma once

#include <span>
#include <vector>

#include "core/attention/matrix_source.h"

namespace qkv {

// The finest level at which a matrix of this size has at most `most` × `most` blocks of 2^level × 2^level cells.
int overview_level(Index rows, Index cols, Index most);

// Levels `finest` and up, each block of one made of 2 × 2 of the one before, until one block is left. Blocks that no
// row was set for, and those that count no cell, are NaN. Not for several threads at once.
class Overview {
 public:
  Overview(Index rows, Index cols, int finest);  // of the matrix, in cells

  int finest() const { return finest_; }
  Index block_rows() const { return levels_.front().mean.rows(); }
  Index block_cols() const { return levels_.front().mean.cols(); }

  // One row of blocks at the finest level, and what is above it: mean and largest value of `count` cells each, all
  // [block_cols()]. Where count is 0 the other two do not matter.
  void set_row(Index row, std::span<const float> mean, std::span<const float> max, std::span<const float> count);

  // The rectangle's blocks can be read off: `level` is held or beyond, and the edges fall on blocks.
  bool has(const Rect& rect, int level) const;
  // As MatrixSource::reduce, where has(rect, level).
  void reduce(const Rect& rect, int level, Reduction how, MatrixRef out) const;

  std::size_t bytes() const;

 private:
  struct Level {
    Matrix mean, max, count;
  };
  void raise_row(const Level& from, Level& to, Index row);

  Index rows_, cols_;
  int finest_;
  std::vector<Level> levels_;
};

}  // namespace qkv
