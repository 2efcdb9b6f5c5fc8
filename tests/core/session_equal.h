// Whether two sessions hold the same things, NaN equal to NaN, for tests.
#pragma once

#include <bit>
#include <cstdint>

#include "core/session/session.h"

namespace qkv::test {

inline bool same_numbers(const Matrix& a, const Matrix& b) {
  if (a.rows() != b.rows() || a.cols() != b.cols()) return false;
  for (Index i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a.data()[i]) != std::bit_cast<std::uint32_t>(b.data()[i])) return false;
  }
  return true;
}

// Every matrix that a person edits; the head range is taken from whichever session has more.
inline bool same_matrices(const Session& a, const Session& b) {
  for (const MatrixKind kind : kAllMatrixKinds) {
    for (int head = 0; head < kMaxHeads; ++head) {
      const SharedMatrix* left = find_input(a, {kind, head});
      const SharedMatrix* right = find_input(b, {kind, head});
      if ((left == nullptr) != (right == nullptr)) return false;
      if (left == nullptr) break;
      if (!same_numbers(**left, **right)) return false;
      if (!is_per_head(kind)) break;
    }
  }
  return a.problem.source.index() == b.problem.source.index();
}

// All but the view, which undo leaves alone.
inline bool same_session(const Session& a, const Session& b) {
  const auto* left = std::get_if<ProjectedSource>(&a.problem.source);
  const auto* right = std::get_if<ProjectedSource>(&b.problem.source);
  if (left && right && (left->heads != right->heads || left->kv_heads != right->kv_heads)) return false;
  return a.title == b.title && a.note == b.note && a.tokens == b.tokens && a.key_tokens == b.key_tokens &&
         a.split == b.split && a.problem.options == b.problem.options && same_matrices(a, b);
}

}  // namespace qkv::test
