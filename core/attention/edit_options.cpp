#include "core/attention/edit_options.h"

#include <algorithm>

#include "core/attention/edit_rows.h"
#include "core/attention/kernel_input.h"

namespace qkv {
namespace {

// Rows in which one bias is not the other.
std::vector<Index> bias_rows(const std::optional<SharedMatrix>& before, const std::optional<SharedMatrix>& after) {
  if (before && after) return changed_rows(*before, *after);
  std::vector<Index> rows;
  const std::optional<SharedMatrix>& only = before ? before : after;
  for (Index row = 0; only && row < only->rows(); ++row) {
    if (!(only->get().row(row).array() == 0).all()) rows.push_back(row);
  }
  return rows;
}

// Rows whose range of keys is another.
std::vector<Index> mask_rows(const AttentionOptions& before, const AttentionOptions& after, const Shapes& shapes) {
  std::vector<Index> rows;
  const KernelMask old_mask = kernel_mask(before, shapes), new_mask = kernel_mask(after, shapes);
  for (Index row = 0; row < shapes.nq; ++row) {
    const KeyRange a = visible_range(old_mask, row, shapes.nk), b = visible_range(new_mask, row, shapes.nk);
    if (a.first != b.first || a.last != b.last) rows.push_back(row);
  }
  return rows;
}

}  // namespace

OptionsEdit compare_options(const AttentionOptions& before, const AttentionOptions& after, const Shapes& shapes) {
  OptionsEdit edit;
  const bool shares_bias =
      before.bias.has_value() == after.bias.has_value() && (!before.bias || before.bias->same_storage(*after.bias));
  const auto without_bias = [](AttentionOptions options) {
    options.bias.reset();
    return options;
  };
  if (shares_bias && without_bias(before) == without_bias(after)) return edit;
  edit.any = true;
  edit.positions = before.rope != after.rope;
  const bool other_distances =
      after.alibi && query_shift(before, shapes.nq, shapes.nk) != query_shift(after, shapes.nq, shapes.nk);
  edit.all_rows = edit.positions || effective_scale(before, shapes.d_k) != effective_scale(after, shapes.d_k) ||
                  before.softcap != after.softcap || before.alibi != after.alibi || other_distances;
  edit.sink = before.sink != after.sink;
  if (edit.all_rows) return edit;
  const std::vector<Index> masked = mask_rows(before, after, shapes), biased = bias_rows(before.bias, after.bias);
  std::set_union(masked.begin(), masked.end(), biased.begin(), biased.end(), std::back_inserter(edit.rows));
  for (Index key = 0; key < shapes.nk; ++key) {
    if (is_valid_key(before, key) != is_valid_key(after, key)) edit.keys.push_back(key);
  }
  return edit;
}

}  // namespace qkv
