// What a heat map shows of a matrix that is not held: blocks of cells as coarse as the screen allows.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "app/engine/tile_store.h"
#include "core/attention/trace.h"

namespace qkv {

// Blocks of 2^row_level × 2^col_level cells of a matrix; level 0 = cells.
struct Picture {
  int row_level = 0, col_level = 0;
  Rect blocks;                // which of the matrix, counted in blocks
  Matrix values;              // [blocks.rows, blocks.cols]
  Matrix keep;                // the same, 0 = nothing visible or nothing known; empty = all are visible
  std::uint64_t version = 0;  // changes with the numbers
  bool complete = false;      // nothing is drawn coarser than it could be
  // The number of a cell, where it is shown itself.
  std::optional<float> cell(Index row, Index col) const;

  // Of tiles, row by row: which are there.
  std::vector<bool> ready;
  Index tile = 0;  // blocks along a side of a tile
};

struct PictureRequest {
  MatrixId id;
  double cell_pixels = 1;  // size of a cell on screen, device pixels
  bool masked = false;     // some cells of the mask are hidden
  Rect visible;            // cells on screen
};

// The pictures of a streamed trace. A cell of about a pixel or more is shown itself; smaller ones as the mean of a
// block, weights as its largest, so that a single large one is seen. What is not computed yet is drawn coarser.
class SourcePictures {
 public:
  // `wake` is called from another thread when there is more to show; may be empty.
  explicit SourcePictures(std::function<void()> wake) : tiles_(std::move(wake)) {}

  // Before the first get() of a frame. Pictures stay as they are while a frame is drawn.
  void begin_frame(const Trace& trace);
  // nullptr where the trace has no such matrix. Valid until begin_frame().
  const Picture* get(const Trace& trace, const PictureRequest& request);

  // Largest value of the blocks, or their mean.
  static Reduction reduction(MatrixKind kind) {
    return kind == MatrixKind::kAttn || kind == MatrixKind::kKeep ? Reduction::kMax : Reduction::kMean;
  }
  // Waits for the tiles that were asked for. True when some came since begin_frame(): the next frame shows more.
  bool wait() const;

 private:
  struct Shown {
    Picture picture;
    std::uint64_t generation = 0;
  };
  void update(Shown& shown, const Trace& trace, const PictureRequest& request);

  TileStore tiles_;
  std::map<std::pair<MatrixKind, int>, Shown> shown_;
  std::uint64_t versions_ = 0;
  std::uint64_t tiles_before_ = 0;  // computed before this frame
};

// The level at which a block is half a pixel to one pixel large; 0 where a cell is.
int level_for(double cell_pixels);

}  // namespace qkv
