#include "core/attention/edit_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace qkv {
namespace {

bool all_finite(std::span<const float> row) {
  return std::all_of(row.begin(), row.end(), [](float value) { return std::isfinite(value); });
}

std::span<const float> row_of(const Matrix& matrix, Index row) {
  return {matrix.row(row).data(), static_cast<std::size_t>(matrix.cols())};
}

// Asks for the cell of a later row: a walk down a column of a large matrix is a cache miss a row.
void prefetch_cell(const Matrix& matrix, Index row, Index col) {
  constexpr Index kAhead = 16;
  if (row + kAhead < matrix.rows()) __builtin_prefetch(&matrix(row + kAhead, col), 1);
}

// Scaled scores and weights of one key before and after the edit, [count].
struct Column {
  std::vector<float> before, after, weights;
};

Column edit_scores(KernelHead& head, Index key, Index first, Index count) {
  const HeadInput input = head_input(head);
  const Rect rect = {first, key, count, 1};
  const auto size = static_cast<std::size_t>(count);
  Column column = {std::vector<float>(size), std::vector<float>(size), {}};
  const auto block = [count](std::vector<float>& cells) { return FloatBlock{cells.data(), count, 1, 1}; };
  for (Index r = 0; r < count; ++r) {
    prefetch_cell(head.scores, first + r, key);
    column.before[static_cast<std::size_t>(r)] = head.scores(first + r, key);
  }
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

// One edited key in float64.
struct Value {
  Eigen::RowVectorXd before, after, change;
  double magnitude_before = 0, magnitude_after = 0;
  bool is_finite = true;
};

Value value_of(const KeyEdit& edit, const Matrix& values) {
  const std::span<const float> before(edit.old_value), after = row_of(values, edit.key);
  const auto size = static_cast<Index>(before.size());
  Value value;
  value.before = Eigen::Map<const RowVector>(before.data(), size).cast<double>();
  value.after = Eigen::Map<const RowVector>(after.data(), size).cast<double>();
  value.change = value.after - value.before;
  value.magnitude_before = static_cast<double>(finite_magnitude(before));
  value.magnitude_after = static_cast<double>(finite_magnitude(after));
  value.is_finite = all_finite(before) && all_finite(after);
  return value;
}

void patch_key(KernelHead& head, const KeyEdit& edit, const Matrix& values, Index first, Index count,
               std::vector<std::uint8_t>& redo) {
  const HeadInput input = head_input(head);
  const bool is_padding = input.mask.key_valid != nullptr && input.mask.key_valid[edit.key] == 0;
  const Column column = edit.key_changed ? edit_scores(head, edit.key, first, count) : Column{};
  if (is_padding) return;
  const Value value = value_of(edit, values);
  EditSums& sums = *head.sums;
  for (Index r = 0; r < count; ++r) {
    const Index row = first + r;
    const auto i = static_cast<std::size_t>(row), c = static_cast<std::size_t>(r);
    prefetch_cell(head.weights, row, edit.key);
    const KeyRange range = visible_range(input.mask, row, head.shapes.nk);
    if (redo[i] || edit.key < range.first || edit.key >= range.last) continue;
    RowSoftmax& stats = head.rows[i];
    // A NaN after the edit fails the comparison too.
    const bool maximum_moves = edit.key_changed && (!(column.after[c] <= stats.max) || !(column.before[c] < stats.max));
    if (maximum_moves || !value.is_finite || !std::isfinite(stats.sum)) {
      redo[i] = 1;
      continue;
    }
    float& weight = head.weights(row, edit.key);
    const double before = weight, after = edit.key_changed ? column.weights[c] : weight;
    if (edit.key_changed) {
      weight = static_cast<float>(after);
      stats.sum += after - before;
      sums.out.row(row) += after * value.after - before * value.before;
    } else {
      sums.out.row(row) += after * value.change;
    }
    sums.magnitude[i] += after * value.magnitude_after - before * value.magnitude_before;
    sums.high[i] = std::max(sums.high[i], sums.magnitude[i]);
  }
}

}  // namespace

std::vector<Index> changed_rows(const SharedMatrix& before, const SharedMatrix& after) {
  std::vector<Index> rows;
  if (before.same_storage(after)) return rows;
  const auto bytes = static_cast<std::size_t>(before.cols()) * sizeof(float);
  for (Index row = 0; row < before.rows(); ++row) {
    if (std::memcmp(before->row(row).data(), after->row(row).data(), bytes) != 0) rows.push_back(row);
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

void make_sums(KernelHead& head, const Matrix& values) {
  const auto rows = static_cast<std::size_t>(head.shapes.nq);
  head.sums = EditSums{MatrixD(head.shapes.nq, head.shapes.d_v), std::vector<double>(rows), std::vector<double>(rows),
                       Eigen::VectorXf(values.rows())};
  for (Index key = 0; key < values.rows(); ++key) head.sums->values[key] = finite_magnitude(row_of(values, key));
}

void reset_sums(KernelHead& head, Index first, Index count, FloatBlock out) {
  EditSums& sums = *head.sums;
  for (Index row = first; row < first + count; ++row) {
    const auto i = static_cast<std::size_t>(row);
    const Eigen::Map<const RowVector> of_row(out.row(row), out.cols);
    sums.out.row(row) = of_row.cast<double>() * head.rows[i].sum;
    sums.magnitude[i] = static_cast<double>(head.weights.row(row).dot(sums.values));
    sums.high[i] = sums.magnitude[i];
  }
}

void patch_rows(KernelHead& head, const std::vector<KeyEdit>& edits, const Matrix& values, Index first, Index count,
                FloatBlock out, std::vector<std::uint8_t>& redo) {
  for (const KeyEdit& edit : edits) patch_key(head, edit, values, first, count, redo);
  const EditSums& sums = *head.sums;
  for (Index row = first; row < first + count; ++row) {
    const auto i = static_cast<std::size_t>(row);
    const RowSoftmax& stats = head.rows[i];
    if (redo[i] || stats.visible == 0) continue;
    if (sums.magnitude[i] < sums.high[i] / 2) {
      redo[i] = 1;
      continue;
    }
    Eigen::Map<RowVector>(out.row(row), out.cols) = (sums.out.row(row) * (1 / stats.sum)).cast<float>();
  }
}

}  // namespace qkv
