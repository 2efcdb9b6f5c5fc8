#include <algorithm>

#include "core/attention/formula.h"
#include "core/figure/figure_parts.h"

namespace qkv {
namespace {

Title title_of(const FigureBuilder& b, const FigureMatrix& matrix) {
  const MatrixKind kind = matrix.id.kind;
  std::string note(kind == MatrixKind::kKeep ? "hatched = hidden" : long_name(kind));
  // The mask is the same for every head.
  if (is_per_head(kind) && kind != MatrixKind::kKeep) note += " · head " + std::to_string(matrix.id.head + 1);
  note += " · " + shape_text(matrix.rows(), matrix.cols());
  return {kind == MatrixKind::kScaled ? scaled_formula(b.trace.problem.options) : std::string(symbol(kind)),
          std::move(note)};
}

}  // namespace

Figure layout_matrix_view(FigureBuilder b) {
  const MatrixId id = b.spec.matrix;
  const FigureMatrix matrix = put_matrix(b, id, 0, 0);
  const double width = b.cell() * static_cast<double>(matrix.cols());
  const double height = b.cell() * static_cast<double>(matrix.rows());

  put_row_labels(b, row_labels(b, row_axis(id.kind), matrix.rows()), 0, 0);
  const AxisLabels above = column_labels(b, col_axis(id.kind), matrix.cols());
  put_column_labels(b, above, 0, 0);
  put_title(b, title_of(b, matrix), 0, -above.extent - kTitleRise);
  if (id.kind != MatrixKind::kKeep) {
    put_bars(b, {bar_of(b, id.kind, "")}, 0, height + 20, std::clamp(width, 120.0, 320.0));
  }
  return finish(std::move(b));
}

}  // namespace qkv
