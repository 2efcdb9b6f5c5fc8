// Cells of scores, scaled scores and weights of one head, computed from Q, K and the softmax of their rows.
#pragma once

#include <memory>

#include "core/attention/kernels/head_kernel.h"
#include "core/attention/matrix_source.h"
#include "core/attention/row_table.h"
#include "core/attention/source.h"
#include "core/attention/visible_keys.h"

namespace qkv {

enum class CellKind { kScores, kScaled, kWeights };

// Safe from many threads.
class StreamedCells {
 public:
  // `q` not rotated, `kv` rotated where there is a rope.
  StreamedCells(SharedMatrix q, std::shared_ptr<const PackedKeyValues> kv, AttentionOptions options,
                const Shapes& shapes, int head);
  StreamedCells(const StreamedCells&) = delete;
  StreamedCells& operator=(const StreamedCells&) = delete;

  const Shapes& shapes() const { return shapes_; }
  const HeadInput& input() const { return input_; }
  const VisibleKeys& visible() const { return visible_; }
  RowTable& rows() const { return rows_; }

  // Works out the softmax of those of the rows that are not in the table.
  void complete_rows(Index first, Index count) const;
  // Cells of `rect` into `out` [rect.rows, rect.cols], hidden ones of scores and scaled too.
  void read(CellKind kind, const Rect& rect, FloatBlock out) const;
  // As MatrixSource::reduce with 2^level = `side`, hidden cells left out. Takes the time of reading them all.
  void reduce(CellKind kind, const Rect& rect, Index side, Reduction how, MatrixRef out) const;
  // Hidden cells of `rect` become NaN.
  void blank_hidden(const Rect& rect, FloatBlock cells) const;

  std::size_t bytes() const;

 private:
  SharedMatrix q_;  // rotated where there is a rope
  std::shared_ptr<const PackedKeyValues> kv_;
  AttentionOptions options_;
  Shapes shapes_;
  HeadInput input_;
  VisibleKeys visible_;
  mutable RowTable rows_;
};

}  // namespace qkv
