#include <algorithm>
#include <utility>

#include "core/attention/formula.h"
#include "core/figure/figure_parts.h"

namespace qkv {
namespace {

Title title_with_shape(const FigureBuilder& b, const FigureMatrix& matrix) {
  const MatrixKind kind = matrix.id.kind;
  Title title{kind == MatrixKind::kScaled ? scaled_formula(b.trace.problem.options) : std::string(symbol(kind)),
              std::string(kind == MatrixKind::kKeep ? "hatched = hidden" : long_name(kind))};
  title = title_of(b, matrix.id, std::move(title));
  // The mask is the same for every head.
  if (is_per_head(kind) && kind != MatrixKind::kKeep) title.note += " · head " + std::to_string(matrix.id.head + 1);
  title.note += " · " + shape_text(matrix.rows(), matrix.cols());
  return title;
}

}  // namespace

Figure layout_matrix_view(FigureBuilder b) {
  const MatrixId id = b.spec.matrix;
  const FigureMatrix matrix = put_matrix(b, id, 0, 0);
  const double width = b.cell() * static_cast<double>(matrix.cols());
  const double height = b.cell() * static_cast<double>(matrix.rows());

  const AxisLabels beside = row_labels(b, row_axis(id.kind), matrix.rows());
  put_row_labels(b, beside, 0, 0);
  const AxisLabels above = column_labels(b, col_axis(id.kind), matrix.cols());
  put_column_labels(b, above, 0, 0);
  put_title(b, title_with_shape(b, matrix), 0, -above.extent - kTitleRise);
  if (has_lens(b, id)) put_headline(b, with_lens(b, ""), -beside.extent, -above.extent - kTitleHeight - 8);
  if (id.kind != MatrixKind::kKeep) {
    const BarSpec bar = bar_of(b, id.kind, "");
    put_bars(b, {bar}, 0, height + bar_room(bar, 20), std::clamp(width, 120.0, 320.0));
  }
  return finish(b);
}

}  // namespace qkv
