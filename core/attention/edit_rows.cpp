#include "core/attention/edit_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "core/attention/edit_options.h"
#include "core/attention/kernels/patch_rows.h"
#include "core/attention/kernels/softmax_exponent.h"

namespace qkv {
namespace {

bool all_finite(std::span<const float> row) {
  return std::all_of(row.begin(), row.end(), [](float value) { return std::isfinite(value); });
}

std::span<const float> row_of(const Matrix& matrix, Index row) {
  return {matrix.row(row).data(), static_cast<std::size_t>(matrix.cols())};
}

// Cells of one column, [count]. Rows lie pages apart: nothing but loads, so that many misses are under way at once.
std::vector<float> column_of(const Matrix& matrix, Index col, Index first, Index count) {
  std::vector<float> cells(static_cast<std::size_t>(count));
  const float* from = &matrix(first, col);
  const Index stride = matrix.cols();
  for (Index r = 0; r < count; ++r) cells[static_cast<std::size_t>(r)] = from[r * stride];
  return cells;
}

// Scaled scores of one key before and after the edit, and the weights of those after, [count].
struct Column {
  std::vector<float> before, after, weights;
};

Column edit_scores(KernelHead& head, Index key, Index first, Index count) {
  const HeadInput input = head_input(head);
  const Rect rect = {first, key, count, 1};
  const auto block = [count](std::vector<float>& cells) { return FloatBlock{cells.data(), count, 1, 1}; };
  Column column;
  column.before = column_of(head.scores, key, first, count);
  column.after.resize(column.before.size());
  scale_cells(input, rect, block(column.before));
  score_cells(input, rect, block(column.after));
  for (Index r = 0; r < count; ++r) head.scores(first + r, key) = column.after[static_cast<std::size_t>(r)];
  scale_cells(input, rect, block(column.after));
  // Sums of 1 leave the weights without their division, as they are held.
  std::vector<RowSoftmax> rows(head.rows.begin() + first, head.rows.begin() + first + count);
  for (RowSoftmax& row : rows) row.sum = 1;
  column.weights = column.after;
  weigh_cells(input, rect, rows, block(column.weights));
  return column;
}

// One edited key in float64, and its weights in some rows.
struct KeyChange {
  std::vector<double> value_before, value_after;    // [d_v]
  std::vector<double> weight_before, weight_after;  // [count]
  double magnitude_before = 0, magnitude_after = 0;
  bool is_finite = true;
};

KeyChange change_of(const KeyEdit& edit, const Matrix& values, Index count) {
  const std::span<const float> before(edit.old_value), after = row_of(values, edit.key);
  KeyChange change;
  change.value_before.assign(before.begin(), before.end());
  change.value_after.assign(after.begin(), after.end());
  change.weight_before.resize(static_cast<std::size_t>(count));
  change.weight_after.resize(static_cast<std::size_t>(count));
  change.magnitude_before = static_cast<double>(finite_magnitude(before));
  change.magnitude_after = static_cast<double>(finite_magnitude(after));
  change.is_finite = all_finite(before) && all_finite(after);
  return change;
}

// The largest score of a row that sees no NaN, or the sink where that is more.
float largest_score(const KernelHead& head, Index row) {
  const HeadInput input = head_input(head);
  const KeyRange range = visible_range(input.mask, row, head.shapes.nk);
  const Index count = range.last - range.first;
  std::vector<float> scores(&head.scores(row, range.first), &head.scores(row, range.first) + count);
  scale_cells(input, {row, range.first, 1, count}, {scores.data(), 1, count, count});
  float largest = input.sink.value_or(-std::numeric_limits<float>::infinity());
  for (Index i = 0; i < count; ++i) {
    if (is_valid_key(head.options, range.first + i)) largest = std::max(largest, scores[static_cast<std::size_t>(i)]);
  }
  return largest;
}

// Whether a row's weights can stay as they are held where its largest score is another one: their exponent is near it.
bool keeps_weights(const RowSoftmax& row, float max) {
  constexpr float kNear = 8;
  const float exponent = max * std::numbers::log2e_v<float>;
  return row.base == 0 && std::abs(max) <= kLargestPlainScore &&
         std::abs(exponent - static_cast<float>(row.exponent)) <= kNear;
}

// The largest score of a row after one key's went from `before` to `after`, or NaN.
float largest_after(const KernelHead& head, Index row, const KeyEdit& edit, float before, float after) {
  const float max = head.rows[static_cast<std::size_t>(row)].max;
  if (edit.is_valid && !(after <= max)) return after;
  // Also of a key that was hidden: where the row's scores were looked through for a key before it, it was not.
  return before < max ? max : largest_score(head, row);
}

// Weights, their sums and magnitudes of one key; the sums of V are left for later.
KeyChange patch_weights(KernelHead& head, const KeyEdit& edit, const Matrix& values, Index first, Index count,
                        std::vector<std::uint8_t>& redo) {
  const KernelMask mask = head_input(head).mask;
  const Column column = edit.is_reweighed() ? edit_scores(head, edit.key, first, count) : Column{};
  KeyChange change = change_of(edit, values, count);
  if (!edit.was_valid && !edit.is_valid) return change;
  const std::vector<float> weights = column_of(head.weights, edit.key, first, count);
  EditSums& sums = *head.sums;
  for (Index r = 0; r < count; ++r) {
    const Index row = first + r;
    const auto i = static_cast<std::size_t>(row), c = static_cast<std::size_t>(r);
    const KeyRange range = visible_range(mask, row, head.shapes.nk);
    if (redo[i] || edit.key < range.first || edit.key >= range.last) continue;
    RowSoftmax& stats = head.rows[i];
    const float max =
        edit.is_reweighed() ? largest_after(head, row, edit, column.before[c], column.after[c]) : stats.max;
    const bool moved = max != stats.max;
    if ((moved && !keeps_weights(stats, max)) || !change.is_finite || !std::isfinite(stats.sum) || stats.visible == 0 ||
        (!edit.is_valid && stats.visible == 1)) {
      redo[i] = 1;
      continue;
    }
    if (moved) {
      stats.max = max;
      sums.unit[i] = denominator_unit(stats);
    }
    const double before = edit.was_valid ? weights[c] : 0;
    const double after = !edit.is_valid ? 0 : edit.is_reweighed() ? column.weights[c] : weights[c];
    if (edit.is_reweighed()) {
      head.weights(row, edit.key) = static_cast<float>(after);
      stats.sum += after - before;
      stats.visible += Index{edit.is_valid} - Index{edit.was_valid};
    }
    change.weight_before[c] = before;
    change.weight_after[c] = after;
    sums.magnitude[i] += after * change.magnitude_after - before * change.magnitude_before;
    sums.high[i] = std::max(sums.high[i], sums.magnitude[i]);
  }
  return change;
}

// Whether the output, or what it was rounded by, may lie where float32 has fewer digits or none: `rest` is of no use.
bool is_near_an_end(const EditSums& sums, std::size_t row) {
  const double least = sums.magnitude[row] / sums.high_sum[row], most = 2 * sums.high[row] / sums.high_sum[row];
  return most > 0x1p126 || (most > 0 && least < 0x1p-76);
}

void patch_sink(KernelHead& head, const SinkEdit& sink, Index first, Index count, std::vector<std::uint8_t>& redo) {
  for (Index row = first; row < first + count; ++row) {
    const auto i = static_cast<std::size_t>(row);
    RowSoftmax& stats = head.rows[i];
    if (redo[i] || stats.visible == 0) continue;
    const bool stays_below = (!sink.before || *sink.before < stats.max) && (!sink.after || *sink.after <= stats.max);
    if (!stays_below || !std::isfinite(stats.sum)) {
      redo[i] = 1;
      continue;
    }
    const auto weight = [&](const std::optional<float>& logit) { return logit ? sink_weight(*logit, stats) : 0; };
    stats.sum += weight(sink.after) - weight(sink.before);
  }
}

}  // namespace

std::vector<Index> changed_rows(const SharedMatrix& before, const SharedMatrix& after) {
  std::vector<Index> rows;
  if (before.same_storage(after)) return rows;
  const auto bytes = static_cast<std::size_t>(before.cols()) * sizeof(float);
  const auto compare = [&](Index row) {
    if (std::memcmp(before->row(row).data(), after->row(row).data(), bytes) != 0) rows.push_back(row);
  };
  if (const auto apart = before.rows_apart(after)) {
    for (const Index row : *apart) compare(row);
  } else {
    for (Index row = 0; row < before.rows(); ++row) compare(row);
  }
  return rows;
}

float finite_magnitude(std::span<const float> row) {
  float largest = 0;
  for (const float value : row) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

bool HeadEdit::reweighs() const {
  return sink ||
         (keys && std::any_of(keys->begin(), keys->end(), [](const KeyEdit& key) { return key.is_reweighed(); }));
}

void make_sums(KernelHead& head, const Matrix& values) {
  const std::vector<double> rows(static_cast<std::size_t>(head.shapes.nq));
  head.sums = EditSums{Matrix(head.shapes.nq, head.shapes.d_v), rows, rows, rows, rows, Eigen::VectorXf(values.rows())};
  for (Index key = 0; key < values.rows(); ++key) head.sums->values[key] = finite_magnitude(row_of(values, key));
}

void reset_sums(KernelHead& head, Index first, Index count) {
  EditSums& sums = *head.sums;
  for (Index row = first; row < first + count; ++row) {
    const auto i = static_cast<std::size_t>(row);
    sums.rest.row(row).setZero();
    sums.magnitude[i] = static_cast<double>(head.weights.row(row).dot(sums.values));
    sums.high[i] = sums.magnitude[i];
    sums.high_sum[i] = head.rows[i].sum;
    sums.unit[i] = denominator_unit(head.rows[i]);
  }
}

void patch_rows(KernelHead& head, const HeadEdit& edit, const Matrix& values, Index first, Index count,
                std::vector<std::uint8_t>& redo) {
  std::vector<SumPatch> sums_of_rows;
  for (Index row = first; row < first + count; ++row) {
    sums_of_rows.push_back({head.rows[static_cast<std::size_t>(row)].sum, std::numeric_limits<double>::quiet_NaN()});
  }
  std::vector<KeyChange> changes;
  if (edit.keys) {
    for (const KeyEdit& key : *edit.keys) changes.push_back(patch_weights(head, key, values, first, count, redo));
  }
  if (edit.sink) patch_sink(head, *edit.sink, first, count, redo);
  EditSums& sums = *head.sums;
  for (Index r = 0; r < count; ++r) {
    const auto i = static_cast<std::size_t>(first + r);
    const RowSoftmax& stats = head.rows[i];
    if (redo[i] || stats.visible == 0) continue;
    sums.high_sum[i] = std::max(sums.high_sum[i], stats.sum);
    if (sums.magnitude[i] < sums.high[i] / 2 || stats.sum < sums.high_sum[i] / 2 || is_near_an_end(sums, i)) {
      redo[i] = 1;
    } else {
      sums_of_rows[static_cast<std::size_t>(r)].after = stats.sum;
    }
  }
  std::vector<KeyPatch> patches;
  for (const KeyChange& change : changes) {
    patches.push_back({change.value_before.data(), change.value_after.data(), change.weight_before.data(),
                       change.weight_after.data()});
  }
  const Rect rows = {first, 0, count, head.shapes.d_v};
  patch_rows_of({sums_of_rows, patches, block_of(block_of(head.out), rows), block_of(block_of(sums.rest), rows)});
}

}  // namespace qkv
