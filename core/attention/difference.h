// Matrices that somebody else computed against ours, in float64.
#pragma once

#include <optional>
#include <vector>

#include "core/attention/matrix_cell.h"
#include "core/attention/source.h"
#include "core/base/thread_pool.h"

namespace qkv {

// What somebody else has for one kind of matrix.
struct OtherMatrix {
  MatrixKind kind = MatrixKind::kAttn;
  bool mean_of_heads = false;       // one matrix, the mean over the heads
  std::vector<MatrixD> heads = {};  // one for each head; one alone for a mean and for a kind that exists once
};

// What float32 results of a right program keep within, as a part of the largest number of the matrix: sums of some
// hundred products and exponentials stay within 1e-5, while float16 rounds at 5e-4 and bfloat16 at 4e-3.
inline constexpr double kFloat32Tolerance = 1e-5;

// One cell in which the two differ.
struct CellDifference {
  MatrixCell cell;  // head 0 for a mean
  double ours = 0, theirs = 0;
  double error() const { return theirs - ours; }
};

// The summary of one kind. A cell is wrong where |theirs − ours| is more than `bound`, or where one of the two is NaN
// or ±Inf and the other is not the same.
struct Difference {
  MatrixKind kind = MatrixKind::kAttn;
  bool mean_of_heads = false;
  Index cells = 0, wrong = 0;
  Index not_finite = 0;                   // of the wrong ones, those where NaN or Inf stand against something else
  double magnitude = 0;                   // the largest |ours| that is finite
  double bound = 0;                       // tolerance · magnitude, or of the largest |theirs| where ours are all 0
  std::optional<CellDifference> largest;  // of the finite ones; absent where all are equal
  std::optional<CellDifference> largest_relative;  // |error| / max(|ours|, |theirs|) of wrong, finite cells
  std::optional<CellDifference> first_wrong;       // by head, row, column
  std::vector<Matrix> errors;                      // theirs − ours by head; 0 where equal, NaN where not finite
  std::vector<Index> wrong_by_head;
  std::vector<std::vector<float>> largest_by_row;  // by head, then row; NaN where a cell is not finite

  bool equal() const { return wrong == 0; }
  // The largest |error| as a part of the magnitude; ∞ where a cell is not finite.
  double relative_size() const;
};

double relative_error(const CellDifference& cell);

// |theirs − ours|: 0 where both are NaN or the same Inf, ∞ where one of them is NaN or Inf alone.
double cell_error(double ours, double theirs);

// What the rows of a matrix of ours are read from: AlteredPass and its like.
class InputCache;

// Of each matrix, in the order of `theirs`, whose shapes fit. The kinds are inputs of the problem or what AlteredPass
// gives. kCancelled when `stop` became true.
Result<std::vector<Difference>> differences(InputCache& cache, const std::vector<OtherMatrix>& theirs,
                                            double tolerance = kFloat32Tolerance, const StopFlag* stop = nullptr);

// Rows, columns and number of matrices of a kind that a problem has; nullopt for one that it does not have.
struct KindShape {
  int heads = 1;
  Index rows = 0, cols = 0;
  bool operator==(const KindShape&) const = default;
};
std::optional<KindShape> shape_of(MatrixKind kind, const Problem& problem, const Shapes& shapes);
// A kind that shape_of() knows, in float64. Of no use when `stop` became true.
OtherMatrix our_matrix(InputCache& cache, MatrixKind kind, const StopFlag* stop = nullptr);
// Inputs: what a person gives. Results follow from them.
bool is_input(MatrixKind kind, const Problem& problem);

}  // namespace qkv
