// One interface to read any matrix of a computation, whether it is held or computed on demand.
#pragma once

#include <cstdint>

#include "core/attention/matrix.h"

namespace qkv {

enum class Reduction { kMean, kMax };

// Read-only view of a matrix. Readers cannot tell a held matrix from one computed tile by tile.
class MatrixSource {
 public:
  virtual ~MatrixSource() = default;
  virtual Index rows() const = 0;
  virtual Index cols() const = 0;
  // Copies the cells of `rect`, which lies inside the matrix, to `out` [rect.rows, rect.cols].
  virtual void read(const Rect& rect, MatrixRef out) const = 0;
  // Blocks of 2^level × 2^level cells become one: `out` is [⌈rows/2^level⌉, ⌈cols/2^level⌉] of `rect`.
  // NaN cells are left out; a block of nothing else is NaN. kMax takes the largest value.
  virtual void reduce(const Rect& rect, int level, Reduction how, MatrixRef out) const = 0;
  // From this level up, and for whole blocks, reduce() only reads off what is there: the time of a copy.
  virtual int overview_level() const { return 0; }
  // Grows whenever what is read off has become more exact.
  virtual std::uint64_t generation() const { return 0; }
  // Row-major storage with stride cols(), or nullptr where the matrix is not held.
  virtual const float* data() const { return nullptr; }
};

// Blocks of `side` × `side` cells of `cells` become one each, by the rule of MatrixSource::reduce.
void reduce_cells(ConstMatrixRef cells, Index side, Reduction how, MatrixRef out);

// A matrix that is held in memory. Does not own it: the Trace does.
class DenseSource final : public MatrixSource {
 public:
  explicit DenseSource(const Matrix& matrix) : matrix_(&matrix) {}
  Index rows() const override { return matrix_->rows(); }
  Index cols() const override { return matrix_->cols(); }
  void read(const Rect& rect, MatrixRef out) const override;
  void reduce(const Rect& rect, int level, Reduction how, MatrixRef out) const override;
  const float* data() const override { return matrix_->data(); }

 private:
  const Matrix* matrix_;
};

}  // namespace qkv
