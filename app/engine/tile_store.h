// Tiles of matrices that are not held, computed off the UI thread and kept while there is room.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/attention/matrix_id.h"
#include "core/attention/matrix_source.h"

namespace qkv {

// One tile: blocks of 2^level × 2^level cells of a matrix, `row` and `col` counted in tiles.
struct TileKey {
  MatrixId id;
  int level = 0;
  Index row = 0, col = 0;
  std::strong_ordering operator<=>(const TileKey& other) const;
  bool operator==(const TileKey&) const = default;
};

// Blocks along a side of a tile: so many that computing one takes a few hundredths of a second.
Index tile_side(int level);
// The cells of the matrix that a tile covers.
Rect tile_cells(const TileKey& key, Index rows, Index cols);

// Called from one thread; a thread of its own computes.
class TileStore {
 public:
  // `wake` is called from the worker when a tile is ready; may be empty.
  explicit TileStore(std::function<void()> wake, std::size_t most_bytes = std::size_t{256} << 20);
  ~TileStore();  // joins
  TileStore(const TileStore&) = delete;
  TileStore& operator=(const TileStore&) = delete;

  // Tiles belong to `origin`, which is kept alive; those of another are forgotten.
  void follow(std::shared_ptr<const void> origin);
  // What was asked for and is not asked for again before the next begin_frame() is not computed.
  void begin_frame();

  // The tile's blocks, or nullptr until it is computed: then the first that were asked for come first. Level 0 are
  // cells; above, `how` they are reduced.
  std::shared_ptr<const Matrix> get(const std::shared_ptr<const MatrixSource>& source, const TileKey& key,
                                    Reduction how);
  // The tile if it is there; asks for nothing.
  std::shared_ptr<const Matrix> find(const TileKey& key);

  std::uint64_t computed() const;  // tiles so far: changes when there is one more to show
  bool idle() const;               // nothing is being computed or waits
  void wait() const;               // until then
  std::size_t bytes() const;       // held

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qkv
