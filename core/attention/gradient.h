// How one number of a computation changes with everything that goes into it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/attention/forward.h"
#include "core/attention/matrix_cell.h"
#include "core/attention/matrix_table.h"

namespace qkv {

// L, the number that is differentiated.
struct GradientTarget {
  std::optional<MatrixCell> cell = {};  // that cell; absent: the sum of squares of out, or of heads_out without a W^O
  bool operator==(const GradientTarget&) const = default;
};

// The kinds whose cells can be a target: out, concat, heads_out, attn, scaled, scores.
bool can_be_target(MatrixKind kind);

// "Σ Out²", "Out[1, 0]", "A[0, 3] of head 2": rows, columns and heads counted from `first`, 0 as in files or 1 as in
// the window.
std::string target_words(const GradientTarget& target, const Shapes& shapes, Index first);

struct Gradient {
  GradientTarget target;
  double value = 0;          // L
  MatrixTable<MatrixD> by;   // ∂L/∂ of each matrix of the trace but the mask and ALiBi, in its shape
  std::vector<double> sink;  // [H] ∂L/∂sink, where the options have them
};

// Reverse-mode differentiation in float64 of steps_in_float64(). K and V gather what all query heads of their group
// send back; concat and heads_out are the same numbers and have the same gradient. What L does not depend on has 0:
// dead rows, hidden cells. In the sums 0 times NaN or Inf is 0: where nothing arrives, nothing is passed on, whatever
// the other factor holds. Errors: as forward; kBadInput where the target is no cell of this computation.
Result<Gradient> gradient(const Problem& problem, const GradientTarget& target = {}, const StopFlag* stop = nullptr);

}  // namespace qkv
