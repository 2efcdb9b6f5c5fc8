#include "core/figure/figure.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/number_text.h"
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

// The kinds that share a scale with `kind` where several matrices are drawn.
std::vector<MatrixKind> scale_group(MatrixKind kind) {
  using enum MatrixKind;
  if (kind == kScores || kind == kAlibi || kind == kBias || kind == kScaled) return {kScores, kAlibi, kBias, kScaled};
  if (kind == kQ || kind == kK || kind == kV || kind == kHeadsOut) return {kQ, kK, kV, kHeadsOut};
  if (kind == kWo || kind == kBo) return {kWo, kBo};
  return {kind};
}

Figure layout_with_cell(const Session& session, const Trace& trace, FigureSpec spec, int cell_px,
                        const TextShaper& shaper) {
  spec.cell_px = cell_px;
  const bool given = is_weights_only(trace.problem.source);
  if (given && spec.view == FigureView::kHead) spec.matrix.kind = MatrixKind::kAttn;  // the head's only step
  FigureBuilder b = make_builder(session, trace, spec, shaper);
  switch (spec.view) {
    case FigureView::kHead:
      if (given) break;
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

// A lower bound of the longer side without laying anything out: labels of a huge matrix take long to measure.
double least_side(const Trace& trace, const FigureSpec& spec) {
  const Shapes& n = trace.shapes;
  double cells = 0;
  switch (spec.view) {
    case FigureView::kMatrix: {
      const Matrix* values = trace.find(spec.matrix);
      cells = values == nullptr ? 0 : static_cast<double>(std::max(values->rows(), values->cols()));
      break;
    }
    case FigureView::kHead:
      if (is_weights_only(trace.problem.source)) {
        cells = static_cast<double>(std::max(n.nq, n.nk));
        break;
      }
      cells = static_cast<double>(std::max(3 * n.nk + n.d_k + n.d_v, n.nq + std::max(n.nk, n.d_k)));
      break;
    case FigureView::kHeads:
      cells = static_cast<double>(std::max(n.nq, n.nk));
      break;
    case FigureView::kConcat:
      cells = static_cast<double>(std::max(n.heads * n.d_v + n.d_out, n.nq));
      break;
  }
  return cells * spec.cell_px * spec.pixels_per_unit;
}

bool fits(const Figure& figure, double pixels_per_unit) {
  const double width = figure.width * pixels_per_unit, height = figure.height * pixels_per_unit;
  return width <= kMaxFigurePx && height <= kMaxFigurePx && width * height <= kMaxFigureArea;
}

// The figure, or nullopt where it would be too large.
std::optional<Figure> try_cell(const Session& session, const Trace& trace, FigureSpec spec, int cell_px,
                               const TextShaper& shaper) {
  spec.cell_px = cell_px;
  if (least_side(trace, spec) > kMaxFigurePx) return std::nullopt;
  Figure figure = layout_with_cell(session, trace, spec, cell_px, shaper);
  if (!fits(figure, spec.pixels_per_unit)) return std::nullopt;
  return figure;
}

Error too_many_cells(const Shapes& shapes) {
  return unsupported("a figure of " + std::to_string(shapes.heads) + (shapes.heads == 1 ? " head" : " heads") + " of " +
                     std::to_string(shapes.nq) + " × " + std::to_string(shapes.nk) + " cells is too large (" +
                     format_fixed(held_bytes(shapes), 0) +
                     " bytes of matrices): take a picture of the window, or use fewer tokens");
}

Error too_large(const Session& session, const Trace& trace, const FigureSpec& spec, const TextShaper& shaper) {
  int fitting = 0;
  for (int low = 1, high = spec.cell_px - 1; low <= high;) {
    const int middle = (low + high) / 2;
    if (try_cell(session, trace, spec, middle, shaper)) {
      fitting = middle;
      low = middle + 1;
    } else {
      high = middle - 1;
    }
  }
  const bool scaled = spec.pixels_per_unit != 1;
  const std::string start = "the picture is too large with cells of " + std::to_string(spec.cell_px) + " pixels" +
                            (scaled ? " at scale " + format_shortest(spec.pixels_per_unit) : "") + "; ";
  if (fitting == 0) {
    return bad_input(start + "even cells of 1 pixel do not fit: choose a smaller " + (scaled ? "scale" : "matrix"));
  }
  return bad_input(start + "the largest cell size that fits is " + std::to_string(fitting));
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

std::string view_colormap(const ViewSettings& look, MatrixKind kind) {
  if (kind == MatrixKind::kKeep) return "blue-orange";
  return is_weights(kind) ? look.weights_map : look.signed_map;
}

FiniteExtent view_extent(const Trace& trace, FigureView view, MatrixKind kind, int head) {
  if (view == FigureView::kMatrix) return extent_of(trace, {kind, head});
  FiniteExtent extent;
  for (const MatrixKind member : scale_group(kind)) {
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
                             const TextShaper& shaper) {
  if (!trace.streams.empty()) return too_many_cells(trace.shapes);
  if (const Status checked = check_spec(trace, spec); !checked.ok()) return checked.error();
  std::optional<Figure> figure = try_cell(session, trace, spec, spec.cell_px, shaper);
  if (!figure) return too_large(session, trace, spec, shaper);
  return std::move(*figure);
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
    matrices.push_back(std::move(entry));
  }
  const Json layout = {
      {"width", figure.width * scale}, {"height", figure.height * scale}, {"matrices", std::move(matrices)}};
  return layout.dump(1) + "\n";
}

}  // namespace qkv
