// What positions do to attention: rotary embedding of Q and K, and the slopes of ALiBi.
#pragma once

#include <span>
#include <vector>

#include "core/attention/matrix_source.h"
#include "core/attention/source.h"

namespace qkv {

// Radians that pair `pair` of a row of size `d` turns per position: base^(−2·pair/d).
double rope_frequency(const Rope& rope, Index pair, Index d);

// The rotation of rows of one size, whose frequencies it works out once. An angle is off by less than 4e-16 of itself,
// so at position 2^17 by less than 5e-11. Position 0 leaves a row as it is: not even a NaN spreads.
class RowRotation {
 public:
  // Of what a pair turns by.
  struct Angle {
    double cosine = 1, sine = 0;
  };

  RowRotation(const Rope& rope, Index d);
  void turn(std::span<double> row, Index position) const;  // d numbers in place
  // For rows of several heads at one position: its angles, d/2 (none at position 0), and the turn by them.
  void find_angles(Index position, std::vector<Angle>& angles) const;
  void turn(std::span<double> row, std::span<const Angle> angles) const;

 private:
  std::vector<double> frequencies_;  // d/2, radians per position
  bool is_half_;
};

// Turns each row of `rows` [n, d], d even, as the token at position `first` + row.
void rotate_rows(MatrixD& rows, const Rope& rope, Index first);

// `rows` in float64, turned where there is a rope: what the scores are computed from.
MatrixD positioned(const Matrix& rows, const std::optional<Rope>& rope, Index first = 0);

// The ALiBi slope of head `head` of `heads`: 2^(−8(h+1)/H) for H a power of two; else the slopes of the next lower
// power of two, then every second slope of twice that (Press et al. 2022, the authors' get_slopes).
double alibi_slope(int head, int heads);

// What ALiBi adds to the scores of a head, −slope·|i − j|, [Nq, Nk], worked out where it is read. −0 nowhere.
class AlibiCells final : public MatrixSource {
 public:
  AlibiCells(const AttentionOptions& options, const Shapes& shapes, int head)
      : head_(head),
        heads_(shapes.heads),
        nq_(shapes.nq),
        nk_(shapes.nk),
        shift_(query_shift(options, shapes.nq, shapes.nk)) {}
  Index rows() const override { return nq_; }
  Index cols() const override { return nk_; }
  void read(const Rect& rect, MatrixRef out) const override;
  void reduce(const Rect& rect, int level, Reduction how, MatrixRef out) const override;

 private:
  int head_, heads_;
  Index nq_, nk_, shift_;
};

}  // namespace qkv
