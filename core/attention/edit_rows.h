// Which rows of the heads an edit changed, and what they touch. Parts of update().
#pragma once

#include <vector>

#include "core/attention/kernel_pass.h"

namespace qkv {

// Rows whose bits differ, ascending; none where storage is shared. Equal shapes.
std::vector<Index> changed_rows(const SharedMatrix& before, const SharedMatrix& after);

// A row of K, of V or of both that was edited, with V as it was.
struct KeyEdit {
  Index key = 0;
  bool key_changed = false;
  std::vector<float> old_value;  // [d_v]
};

// Largest finite |value|.
float finite_magnitude(std::span<const float> row);

// Room for the sums of all rows, and the magnitudes of `values` [Nk, d_v].
void make_sums(KernelHead& head, const Matrix& values);
// The sums of rows [first, first + count) from their weights, statistics and normalized `out` [Nq, d_v].
void reset_sums(KernelHead& head, Index first, Index count, FloatBlock out);

// Redoes what edited keys touch in query rows [first, first + count) of a head whose PackedKeyValues are those after
// the edit and whose sums exist. `values` [Nk, d_v] after the edit. Rows that cannot be patched are marked in `redo`
// [Nq] and left for attend_rows(): their maximum moved, a NaN came or went, or most of what their sums were rounded
// from is gone. Different rows may run on different threads.
void patch_rows(KernelHead& head, const std::vector<KeyEdit>& edits, const Matrix& values, Index first, Index count,
                FloatBlock out, std::vector<std::uint8_t>& redo);

}  // namespace qkv
