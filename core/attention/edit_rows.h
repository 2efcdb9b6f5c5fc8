// Which rows of the heads an edit changed, and what they touch. Parts of update().
#pragma once

#include <optional>
#include <vector>

#include "core/attention/kernel_pass.h"

namespace qkv {

// Rows whose bits differ, ascending; none where storage is shared. Equal shapes.
std::vector<Index> changed_rows(const SharedMatrix& before, const SharedMatrix& after);

// A key whose row of K or of V was edited, or that key_valid hides or shows.
struct KeyEdit {
  Index key = 0;
  bool key_changed = false;
  bool was_valid = true, is_valid = true;
  std::vector<float> old_value;  // [d_v]
  // Its weights are other ones.
  bool is_reweighed() const { return key_changed || was_valid != is_valid; }
};

// The logit of a head's sink before and after.
struct SinkEdit {
  std::optional<float> before, after;
};

// What patch_rows() redoes in a query head.
struct HeadEdit {
  const std::vector<KeyEdit>* keys = nullptr;  // of its key/value head; nullptr = none
  std::optional<SinkEdit> sink;
  bool any() const { return (keys && !keys->empty()) || sink; }
  // Some weights or their sum are other ones.
  bool reweighs() const;
};

// Largest finite |value|.
float finite_magnitude(std::span<const float> row);

// Room for the sums of all rows, and the magnitudes of `values` [Nk, d_v].
void make_sums(KernelHead& head, const Matrix& values);
// The sums of rows [first, first + count) that were computed in full, from their weights and statistics.
void reset_sums(KernelHead& head, Index first, Index count);

// Redoes what an edit touches in query rows [first, first + count) of a head whose options, PackedKeyValues and
// `values` [Nk, d_v] are those after the edit and whose sums exist.
// Rows that cannot be patched are marked in `redo` [Nq] and left for attend_rows(): their maximum moved far, a NaN came
// or went, most of what their sums were rounded from is gone, or they are near an end of float32. Different rows may run
// on different threads.
void patch_rows(KernelHead& head, const HeadEdit& edit, const Matrix& values, Index first, Index count,
                std::vector<std::uint8_t>& redo);

}  // namespace qkv
