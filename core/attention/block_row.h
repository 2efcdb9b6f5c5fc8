// One row of an overview's blocks while it is being summed up from the rows of cells in it.
#pragma once

#include <array>
#include <vector>

#include "core/attention/overview.h"
#include "core/attention/streamed_cells.h"

namespace qkv {

inline constexpr std::array kCellKinds = {CellKind::kScores, CellKind::kScaled, CellKind::kWeights};

// What attend_rows hands over about the blocks of `rows` rows.
class BlockPlanes {
 public:
  BlockPlanes(Index rows, Index blocks);

  KeyBlockOutput output(Index width);
  // Row `row` of the summary of one matrix. Weights have no min and lack the division by the row's sum.
  struct Row {
    const float *sum, *min, *max;
  };
  Row row(CellKind kind, Index row) const;
  static std::size_t bytes(Index rows, Index blocks);

 private:
  static constexpr int kPlanes = 8;
  FloatBlock plane(int n);
  Index rows_, blocks_;
  std::vector<float> cells_;  // kPlanes × [rows, blocks]
};

// Blocks of 2^level × 2^level cells side by side, of one matrix.
class BlockRow {
 public:
  BlockRow(CellKind kind, Index blocks);

  void clear();
  // One row of cells, each weight to be multiplied by `factor`.
  void add(const BlockPlanes::Row& row, float factor);
  // Means, largest values and the smallest and largest finite cell of the rows added. `part`: these rows, all keys;
  // counts[b]: their visible cells in block b, less those of rows that were left out because their weights are NaN.
  // Where a sum is not finite the block is read cell by cell.
  void finish(const StreamedCells& cells, const Rect& part, Index side, std::span<const Index> counts);

  std::vector<float> mean, max, count;
  float lowest = 0, highest = 0;  // finite; lowest > highest where there is none

 private:
  void reread(const StreamedCells& cells, const Rect& block, std::size_t b);

  CellKind kind_;
  std::vector<double> sum_;
  std::vector<float> min_;
  Matrix buffer_;
};

}  // namespace qkv
