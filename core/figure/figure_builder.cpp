// Matrices of a trace in a figure, and what they show through a lens.
#include <utility>

#include "core/figure/figure_parts.h"

namespace qkv {
namespace {

// Of the values that share a colour scale with a kind: a matrix alone has its own.
const FiniteExtent& lens_extent(const FigureBuilder& b, MatrixId id) {
  if (b.spec.view == FigureView::kMatrix) return b.lens->each.at(id);
  return b.lens->extents[static_cast<std::size_t>(scale_group(id.kind))];
}

// The head that the scale of a kind is looked up by.
MatrixId scale_id(const FigureBuilder& b, MatrixKind kind) {
  return {kind, b.spec.view == FigureView::kMatrix ? b.spec.matrix.head : 0};
}

std::string colormap_of(const FigureBuilder& b, MatrixKind kind) {
  return has_lens(b, scale_id(b, kind)) ? b.spec.look.signed_map : view_colormap(b.spec.look, kind);
}

}  // namespace

FigureBuilder make_builder(const Session& session, const Trace& trace, const FigureSpec& spec, const TextShaper& shaper,
                           const LensCells* lens) {
  return {make_sheet(session, spec, shaper), trace, lens};
}

bool has_lens(const FigureBuilder& b, MatrixId id) { return b.lens != nullptr && b.lens->find(id) != nullptr; }

Title title_of(const FigureBuilder& b, MatrixId id, Title title, bool transposed) {
  if (!has_lens(b, id)) return title;
  const std::string unit = title_unit(b, power_of(b.lens->each.at(id)));
  return {lens_matrix_name(*b.lens, id.kind, transposed).whole + unit, lens_note(*b.lens, id)};
}

std::string title_unit(const FigureSheet& b, int power) { return has_room_for_units(b) ? unit_words(power) : ""; }

std::string with_lens(const FigureBuilder& b, std::string note) {
  if (b.lens == nullptr) return note;
  return (note.empty() ? "" : note + " · ") + lens_heading(*b.lens, b.trace.shapes);
}

ColorRange scale_of(FigureBuilder& b, MatrixKind kind) {
  std::optional<ColorRange>& scale = b.scales[static_cast<std::size_t>(kind)];
  if (!scale && has_lens(b, scale_id(b, kind))) {
    scale = resolve_range({RangeMode::kSymmetric, -1, 1}, lens_extent(b, scale_id(b, kind)));
  }
  if (!scale) scale = view_range(b.trace, b.spec.look, b.spec.view, kind, b.spec.matrix.head);
  return *scale;
}

FigureMatrix& put_matrix(FigureBuilder& b, MatrixId id, double x, double y, bool transposed) {
  FigureMatrix matrix;
  matrix.id = id;
  matrix.values = b.trace.find(id);
  if (has_lens(b, id)) {
    matrix.values = b.lens->find(id);
    matrix.shows = b.lens->precision ? format_name(b.lens->precision->format) : "gradient";
    matrix.in_units = true;
    matrix.factor = unit_factor(power_of(b.lens->each.at(id)));
  }
  const bool masked = id.kind == MatrixKind::kAttn || id.kind == MatrixKind::kKeep;
  if (masked && count_hidden(b.trace) > 0) matrix.keep = &b.trace.keep.get();
  matrix.transposed = transposed;
  matrix.x = x;
  matrix.y = y;
  matrix.cell_w = matrix.cell_h = b.cell();
  matrix.decimals = b.spec.look.decimals;
  matrix.colormap = colormap_of(b, id.kind);
  matrix.range = scale_of(b, id.kind);
  b.figure.matrices.push_back(std::move(matrix));
  return b.figure.matrices.back();
}

BarSpec bar_of(FigureBuilder& b, MatrixKind kind, std::string caption) {
  const MatrixId id = scale_id(b, kind);
  if (!has_lens(b, id)) {
    const bool empty = view_extent(b.trace, b.spec.view, kind, b.spec.matrix.head).count == 0;
    return {std::move(caption), view_colormap(b.spec.look, kind), scale_of(b, kind), empty};
  }
  const FiniteExtent& extent = lens_extent(b, id);
  const int power = power_of(extent);
  const std::string name = lens_bar_name(*b.lens, caption.empty() ? std::string(symbol(kind)) : caption);
  return {name + unit_words(power), colormap_of(b, kind), scale_of(b, kind), extent.count == 0, unit_factor(power)};
}

}  // namespace qkv
