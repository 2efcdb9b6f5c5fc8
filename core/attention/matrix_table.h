// A matrix for each matrix of a computation, found by the same names as in its Trace.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "core/attention/matrix.h"
#include "core/attention/matrix_id.h"

namespace qkv {

template <class M>
class MatrixTable {
 public:
  // nullptr where there is none. The head counts only for the kinds that exist per head.
  const M* find(MatrixId id) const {
    const std::vector<M>& heads = of_kind_[static_cast<std::size_t>(id.kind)];
    const int head = is_per_head(id.kind) ? id.head : 0;
    return head >= 0 && static_cast<std::size_t>(head) < heads.size() ? &heads[static_cast<std::size_t>(head)]
                                                                      : nullptr;
  }
  // There is one.
  const M& at(MatrixId id) const { return *find(id); }
  M& at(MatrixId id) {
    return of_kind_[static_cast<std::size_t>(id.kind)][static_cast<std::size_t>(is_per_head(id.kind) ? id.head : 0)];
  }

  // The heads of a kind in their order; those that exist once have one.
  M& add(MatrixKind kind, M matrix) { return of_kind_[static_cast<std::size_t>(kind)].emplace_back(std::move(matrix)); }
  const std::vector<M>& heads(MatrixKind kind) const { return of_kind_[static_cast<std::size_t>(kind)]; }

 private:
  std::array<std::vector<M>, kAllMatrixKinds.size()> of_kind_;
};

}  // namespace qkv
