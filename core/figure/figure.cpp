#include "core/figure/figure.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/number_text.h"
#include "core/figure/cell_text.h"
#include "core/figure/figure_parts.h"

namespace qkv {
namespace {

// Extent of one matrix as it is drawn: hidden weights don't count.
FiniteExtent extent_of(const Trace& trace, MatrixId id) {
  const Matrix* values = trace.find(id);
  if (values == nullptr) return {};
  const bool masked = id.kind == MatrixKind::kAttn && count_hidden(trace) > 0;
  return masked ? finite_extent(*values, trace.keep.get()) : finite_extent(*values);
}

Figure layout_view(FigureBuilder b) {
  switch (b.spec.view) {
    case FigureView::kHead:
      return layout_head_view(std::move(b));
    case FigureView::kHeads:
      return layout_heads_view(std::move(b));
    case FigureView::kConcat:
      return layout_concat_view(std::move(b));
    case FigureView::kMatrix:
      break;
  }
  return layout_matrix_view(std::move(b));
}

// Cells along the longer side at least, without laying anything out.
Index least_cells(const Trace& trace, const FigureSpec& spec) {
  const Shapes& n = trace.shapes;
  switch (spec.view) {
    case FigureView::kMatrix: {
      const Matrix* values = trace.find(spec.matrix);
      return values == nullptr ? 0 : std::max(values->rows(), values->cols());
    }
    case FigureView::kHead:
      return std::max(3 * n.nk + n.d_k + n.d_v, n.nq + std::max<Index>(n.nk, n.d_k));
    case FigureView::kHeads:
      return std::max(n.nq, n.nk);
    case FigureView::kConcat:
      break;
  }
  return std::max<Index>(n.heads * n.d_v + n.d_out, n.nq);
}

Error too_many_cells(const Shapes& shapes) {
  return unsupported("a figure of " + std::to_string(shapes.heads) + (shapes.heads == 1 ? " head" : " heads") + " of " +
                     std::to_string(shapes.nq) + " × " + std::to_string(shapes.nk) + " cells is too large (" +
                     format_fixed(held_bytes(shapes), 0) +
                     " bytes of matrices): take a picture of the window, or use fewer tokens");
}

Status check_spec(const Trace& trace, const FigureSpec& spec) {
  if (spec.cell_px < 1 || spec.cell_px > 256) {
    return bad_input("a cell size of " + std::to_string(spec.cell_px) + " pixels: it must be 1 to 256");
  }
  for (const std::string& name : {spec.look.weights_map, spec.look.signed_map}) {
    if (!is_colormap(name)) return bad_input("no colour map is named \"" + name + "\"");
  }
  if (spec.view == FigureView::kConcat && is_weights_only(trace.problem.source)) {
    return bad_input("there are no head outputs to put side by side: this session holds attention weights alone");
  }
  const MatrixKind kind = spec.matrix.kind;
  const bool needs_head = spec.view == FigureView::kHead || (spec.view == FigureView::kMatrix && is_per_head(kind));
  const bool kv = spec.view == FigureView::kMatrix && (kind == MatrixKind::kK || kind == MatrixKind::kV);
  const int heads = kv ? trace.shapes.kv_heads : trace.shapes.heads;
  if (needs_head && (spec.matrix.head < 0 || spec.matrix.head >= heads)) {
    return bad_input("there is no head " + std::to_string(spec.matrix.head + 1) + ": this session has " +
                     std::to_string(heads) + (kv ? " key/value" : "") + (heads == 1 ? " head" : " heads"));
  }
  if (spec.view == FigureView::kMatrix && trace.find(spec.matrix) == nullptr) {
    return bad_input("this session has no " + std::string(long_name(kind)) + " (" + std::string(file_key(kind)) + ")");
  }
  return Done{};
}

// The float64 that prints as the shortest text of `value`: 0.1, not 0.10000000149011612.
double shortest(float value) {
  const std::string text = format_shortest(value);
  double parsed = value;
  std::from_chars(text.data(), text.data() + text.size(), parsed);
  return parsed;
}

}  // namespace

std::string FigureMatrix::number(Index row, Index col) const {
  const float shown = value(row, col) * factor;
  if (brief) return brief_cell_text(shown, decimals);
  return in_units && !integers ? format_fixed(shown, decimals) : cell_text(shown, decimals, integers);
}

std::string view_colormap(const ViewSettings& look, MatrixKind kind) {
  if (kind == MatrixKind::kKeep) return "blue-orange";
  return is_weights(kind) ? look.weights_map : look.signed_map;
}

FiniteExtent view_extent(const Trace& trace, FigureView view, MatrixKind kind, int head) {
  if (view == FigureView::kMatrix) return extent_of(trace, {kind, head});
  FiniteExtent extent;
  for (const MatrixKind member : kAllMatrixKinds) {
    if (scale_group(member) != scale_group(kind)) continue;
    const bool per_kv_head = member == MatrixKind::kK || member == MatrixKind::kV;
    const int heads = !is_per_head(member) ? 1 : per_kv_head ? trace.shapes.kv_heads : trace.shapes.heads;
    for (int h = 0; h < heads; ++h) extent = merge(extent, extent_of(trace, {member, h}));
  }
  return extent;
}

ColorRange view_range(const Trace& trace, const ViewSettings& look, FigureView view, MatrixKind kind, int head) {
  if (kind == MatrixKind::kKeep) return {1, 1, true};
  return resolve_range(is_weights(kind) ? look.weights_range : look.signed_range, view_extent(trace, view, kind, head));
}

Status check_figure_size(const Shapes& shapes) {
  return held_bytes(shapes) <= kMostHeldBytes ? Status(Done{}) : Status(too_many_cells(shapes));
}

Result<Figure> layout_figure(const Session& session, const Trace& trace, const FigureSpec& spec,
                             const TextShaper& shaper, const LensCells* lens) {
  if (!trace.streams.empty()) return too_many_cells(trace.shapes);
  if (const Status checked = check_spec(trace, spec); !checked.ok()) return checked.error();
  FigureSpec of = spec;
  // Given weights are a head's only step.
  if (is_weights_only(trace.problem.source) && spec.view == FigureView::kHead) {
    of.view = FigureView::kMatrix;
    of.matrix.kind = MatrixKind::kAttn;
  }
  return layout_within_bounds(of, least_cells(trace, of), [&](const FigureSpec& with_cell) {
    return layout_view(make_builder(session, trace, with_cell, shaper, lens));
  });
}

std::string layout_json(const Figure& figure, double scale) {
  using Json = nlohmann::ordered_json;
  Json matrices = Json::array();
  for (const FigureMatrix& m : figure.matrices) {
    Json entry = {{"matrix", file_key(m.id.kind)},
                  {"head", m.id.head},
                  {"rows", m.rows()},
                  {"cols", m.cols()},
                  {"x", m.x * scale},
                  {"y", m.y * scale},
                  {"cell_w", m.cell_w * scale},
                  {"cell_h", m.cell_h * scale},
                  {"range", {shortest(m.range.low), shortest(m.range.high)}},
                  {"colormap", m.colormap}};
    if (m.transposed) entry["transposed"] = true;
    if (m.range.log) entry["log"] = true;
    if (!m.shows.empty()) entry["shows"] = m.shows;
    matrices.push_back(std::move(entry));
  }
  const Json layout = {
      {"width", figure.width * scale}, {"height", figure.height * scale}, {"matrices", std::move(matrices)}};
  return layout.dump(1) + "\n";
}

}  // namespace qkv
