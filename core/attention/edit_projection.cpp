#include "core/attention/edit_projection.h"

#include <cstring>

#include "core/attention/edit_rows.h"

namespace qkv {
namespace {

// Columns of W or of the bias whose bits differ, ascending.
std::vector<Index> changed_columns(const Projection& before, const Projection& after) {
  std::vector<std::uint8_t> changed(static_cast<std::size_t>(after.w.cols()),
                                    before.bias.has_value() != after.bias.has_value());
  const auto compare = [&changed](const Matrix& a, const Matrix& b, Index row) {
    for (Index c = 0; c < a.cols(); ++c) {
      if (std::memcmp(&a(row, c), &b(row, c), sizeof(float)) != 0) changed[static_cast<std::size_t>(c)] = 1;
    }
  };
  for (const Index row : changed_rows(before.w, after.w)) compare(*before.w, *after.w, row);
  if (before.bias && after.bias && !changed_rows(*before.bias, *after.bias).empty()) {
    compare(**before.bias, **after.bias, 0);
  }
  std::vector<Index> columns;
  for (std::size_t c = 0; c < changed.size(); ++c) {
    if (changed[c]) columns.push_back(static_cast<Index>(c));
  }
  return columns;
}

Matrix pick_rows(const Matrix& matrix, const std::vector<Index>& rows) {
  Matrix picked(static_cast<Index>(rows.size()), matrix.cols());
  for (Index r = 0; r < picked.rows(); ++r) picked.row(r) = matrix.row(rows[static_cast<std::size_t>(r)]);
  return picked;
}

Matrix pick_columns(const Matrix& matrix, const std::vector<Index>& columns) {
  Matrix picked(matrix.rows(), static_cast<Index>(columns.size()));
  for (Index c = 0; c < picked.cols(); ++c) picked.col(c) = matrix.col(columns[static_cast<std::size_t>(c)]);
  return picked;
}

}  // namespace

std::optional<std::vector<SharedMatrix>> edit_projection(const std::vector<SharedMatrix>& heads,
                                                         const Projection& before, const Projection& after,
                                                         const PassOptions& options) {
  std::vector<SharedMatrix> edited = heads;
  const Index width = heads[0].cols();
  const std::vector<Index> rows = changed_rows(before.x, after.x), columns = changed_columns(before, after);
  Matrix product;
  if (!columns.empty()) {
    std::optional<SharedMatrix> bias;
    if (after.bias) bias = pick_columns(**after.bias, columns);
    if (!project_rows(*after.x, pick_columns(*after.w, columns), bias, product, options)) return std::nullopt;
    for (Index c = 0; c < product.cols(); ++c) {
      const Index column = columns[static_cast<std::size_t>(c)];
      edited[static_cast<std::size_t>(column / width)].edit().col(column % width) = product.col(c);
    }
  }
  if (!rows.empty()) {
    if (!project_rows(pick_rows(*after.x, rows), *after.w, after.bias, product, options)) return std::nullopt;
    for (std::size_t h = 0; h < edited.size(); ++h) {
      for (Index r = 0; r < product.rows(); ++r) {
        edited[h].edit_rows(rows[static_cast<std::size_t>(r)], 1) =
            product.row(r).segment(static_cast<Index>(h) * width, width);
      }
    }
  }
  return edited;
}

}  // namespace qkv
