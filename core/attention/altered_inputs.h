// Q, K and V of an altered computation, in float64.
#pragma once

#include <memory>
#include <vector>

#include "core/attention/altered.h"

namespace qkv {

struct AlteredHeads {
  std::vector<MatrixD> q, k, v;               // H × [Nq, d_k], H_kv × [Nk, d_k], H_kv × [Nk, d_v]
  std::vector<MatrixD> rotated_q, rotated_k;  // where there is a rope, else empty
  std::vector<bool> v_finite;                 // H_kv
  const MatrixD& scoring_q(std::size_t head) const { return rotated_q.empty() ? q[head] : rotated_q[head]; }
  const MatrixD& scoring_k(std::size_t head) const { return rotated_k.empty() ? k[head] : rotated_k[head]; }
};

// Whether the shapes allow it: `taken_from` swaps what has the same shape, transposed weights are square.
bool can_be(const AlteredInputs& inputs, const Problem& problem, const Shapes& shapes);

// can_be() holds. `format` rounds what comes of projections and rotations.
AlteredHeads make_inputs(const Problem& problem, const AlteredInputs& inputs, NumberFormat format);

// A number as `format` keeps it.
double rounded(double value, NumberFormat format);
void round_all(MatrixD& matrix, NumberFormat format);

// The last inputs made, and the first: trials that leave Q, K and V alone do not make them again. Not for two threads.
class InputCache {
 public:
  InputCache(const Problem& problem, const Shapes& shapes) : problem_(problem), shapes_(shapes) {}
  std::shared_ptr<const AlteredHeads> get(const AlteredInputs& inputs, NumberFormat format);
  const Problem& problem() const { return problem_; }
  const Shapes& shapes() const { return shapes_; }

 private:
  struct Entry {
    AlteredInputs inputs;
    NumberFormat format;
    std::shared_ptr<const AlteredHeads> made;
  };
  const Problem& problem_;
  Shapes shapes_;
  std::vector<Entry> entries_;  // the first made and the last
};

}  // namespace qkv
