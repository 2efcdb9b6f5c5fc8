// One head of attention whose N² matrices are never held: their cells are computed when they are read.
#pragma once

#include <memory>
#include <optional>

#include "core/attention/kernels/head_kernel.h"
#include "core/attention/matrix_id.h"
#include "core/attention/matrix_source.h"
#include "core/attention/source.h"
#include "core/base/thread_pool.h"

namespace qkv {

// Smallest and largest finite visible cell; low > high where there is none.
struct CellExtent {
  float low = 1, high = 0;
};

// Blocks that an overview has at most along each side: enough for a picture on a screen, 16 MiB a matrix.
inline constexpr Index kOverviewBlocks = 1024;

// Holds Q, K and V, the softmax of each row, overviews, and O if it is asked for: O(N·d) in all. Cells have the same
// bits as where attend_rows writes the whole matrices.
class StreamedHead {
 public:
  // `q` [Nq, d_k] not rotated; `kv` of the head's key/value head, rotated where there is a rope.
  StreamedHead(SharedMatrix q, std::shared_ptr<const PackedKeyValues> kv, AttentionOptions options,
               const Shapes& shapes, int head, bool with_out, Index overview_blocks = kOverviewBlocks);
  ~StreamedHead();
  StreamedHead(const StreamedHead&) = delete;
  StreamedHead& operator=(const StreamedHead&) = delete;

  // The streaming pass: the softmax of every row, the overviews, and O. First one row of each block of rows, which
  // gives a coarse picture; then all rows, blocks in an order that refines the picture evenly. False when `stop` became
  // true before the end; the next call goes on from there. One call at a time; everything else may be called meanwhile
  // from any thread.
  bool compute(ThreadPool& pool, const StopFlag* stop = nullptr);
  // Its first part alone: the coarse picture.
  bool sample(ThreadPool& pool, const StopFlag* stop = nullptr);

  double progress() const;           // 0 … 1, never falls; 1 once compute() has returned true
  std::uint64_t generation() const;  // grows whenever there is more to see than before; 0 = nothing yet
  // The coarse picture exists: every block of the overviews has a value.
  bool has_overview() const;

  const Shapes& shapes() const;
  // 2^overview_level() × 2^overview_level() cells make one of the finest overview.
  int overview_level() const;
  // Of the cells seen so far, for colour scales; the low end of attn is 0. `kind`: scores, scaled or attn.
  CellExtent extent(MatrixKind kind) const;
  // The softmax of one row; worked out now if the pass has not come to it.
  RowSoftmax row(Index row) const;
  // O, [Nq, d_v], complete once progress() is 1; nullptr where it was not asked for.
  const Matrix* out() const;

  // Bytes held for as long as this exists, K, V and an unrotated Q included though others may share them; and what
  // each thread of the pass takes on top while it runs.
  std::size_t bytes() const;
  std::size_t bytes_per_worker() const;

  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// A matrix of the head: scores, scaled, attn, keep, or heads_out where it was asked for; nullptr for other kinds.
// Reading is exact at any time; a row of weights that the pass has not come to is worked out on the way. What has not
// been computed of heads_out reads as NaN. Reductions leave hidden cells out, and from overview_level() up they are
// read off the overviews, as exact as these are by then. A block is hidden where the reduced `keep`, by kMax, is 0:
// NaN there is no value, elsewhere it means that every visible cell is NaN (or that nothing is known yet).
std::shared_ptr<const MatrixSource> streamed_source(std::shared_ptr<const StreamedHead> head, MatrixKind kind);

}  // namespace qkv
