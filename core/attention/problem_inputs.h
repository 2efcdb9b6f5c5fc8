// The matrices that a problem is given, whatever its source: all else follows from them.
#pragma once

#include <span>
#include <vector>

#include "core/attention/matrix_id.h"
#include "core/attention/source.h"

namespace qkv {

// All heads of one kind; one matrix where the kind does not exist per head. Refers to the problem.
struct ProblemInput {
  MatrixKind kind = MatrixKind::kQ;
  std::span<const SharedMatrix> matrices;
};
// In this order: q k v, or x wq bq wk bk wv bv, or attn; wo bo bias. Only those that are there.
std::vector<ProblemInput> inputs_of(const Problem& problem);

// Whether both are made of the same storage, with equal options: with equal shapes, all results are then the same.
bool same_inputs(const Problem& a, const Problem& b);

// One of them; nullptr where the problem has no such matrix.
const SharedMatrix* find_input(const Problem& problem, MatrixId id);

}  // namespace qkv
