// How many keys the queries see, counted without a matrix of them.
#pragma once

#include <span>
#include <vector>

#include "core/attention/kernels/head_kernel.h"

namespace qkv {

// The mask of a head, [Nq, Nk]. Refers to the mask's key_valid: not longer than that lives.
class VisibleKeys {
 public:
  VisibleKeys(const KernelMask& mask, Index nq, Index nk);

  Index rows() const { return nq_; }
  Index cols() const { return nk_; }
  bool sees(Index row, Index key) const;
  // Visible cells of a row among keys [first, last), in O(1).
  Index count(Index row, Index first, Index last) const;
  // No cell of `rect` is visible.
  bool hides(const Rect& rect) const;
  // Visible cells of `rect` in blocks of `width` keys, rect.rows to a block: counts[b], ⌈rect.cols/width⌉ of them.
  // Takes O(blocks), and O(rect.rows) for each block where the mask has an edge.
  void count_blocks(const Rect& rect, Index width, std::span<Index> counts) const;
  // Bytes held.
  std::size_t bytes() const { return valid_before_.capacity() * sizeof(Index); }

 private:
  Index valid(Index first, Index last) const;

  KernelMask mask_;
  Index nq_, nk_;
  std::vector<Index> valid_before_;  // [Nk + 1] valid keys before key j; empty without key_valid
};

}  // namespace qkv
