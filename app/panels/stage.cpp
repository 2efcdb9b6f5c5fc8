#include "app/panels/stage.h"

#include "app/panels/lens.h"

#include <algorithm>
#include <cmath>

namespace qkv {
namespace {

// Zooming in stops when so many entries fill an axis.
constexpr double kFewestVisible = 1.5;

}  // namespace

Rect Selection::rect() const {
  const Index r = std::min(anchor_row, row), c = std::min(anchor_col, col);
  return {r, c, std::abs(anchor_row - row) + 1, std::abs(anchor_col - col) + 1};
}

void AxisView::clamp(double count) {
  zoom = std::clamp(zoom, 1.0, std::max(1.0, count / kFewestVisible));
  first = std::clamp(first, 0.0, std::max(0.0, count - visible(count)));
}

void AxisView::zoom_about(double count, double at, double factor) {
  const double share = (at - first) / visible(count);
  zoom *= factor;
  zoom = std::clamp(zoom, 1.0, std::max(1.0, count / kFewestVisible));
  first = at - share * visible(count);
  clamp(count);
}

std::optional<CellRef> focus_cell(const StageState& state) {
  if (state.scrub.active) return state.scrub.cell;
  if (state.keyboard_leads && state.selection) return state.selection->cell();
  if (state.last_hover) return state.last_hover;
  if (state.selection) return state.selection->cell();
  return std::nullopt;
}

const Matrix* shown_matrix(const StageInput& in, MatrixId id) {
  const Matrix* computed = in.computed.trace.find(id);
  const SharedMatrix* input = find_input(in.session, id);
  if (input == nullptr || computed == nullptr) return computed;
  const bool same_shape = input->rows() == computed->rows() && input->cols() == computed->cols();
  return same_shape ? &input->get() : computed;
}

float ShownCells::at(Index row, Index col) const {
  if (held != nullptr) return (*held)(row, col);
  float value = 0;
  source->read({row, col, 1, 1}, Eigen::Map<Matrix>(&value, 1, 1));
  return value;
}

Matrix ShownCells::block(const Rect& rect) const {
  if (held != nullptr) return held->block(rect.row, rect.col, rect.rows, rect.cols);
  Matrix cells(rect.rows, rect.cols);
  source->read(rect, cells);
  return cells;
}

ShownCells shown_cells(const StageInput& in, MatrixId id) {
  if (const Matrix* held = shown_matrix(in, id)) return {held->rows(), held->cols(), held, nullptr};
  if (in.computed.trace.streams.empty()) return {};
  auto source = in.computed.trace.source(id);
  return source ? ShownCells{source->rows(), source->cols(), nullptr, source} : ShownCells{};
}

bool is_editable(const StageInput& in, MatrixId id) {
  const SharedMatrix* input = find_input(in.session, id);
  const Matrix* shown = shown_matrix(in, id);
  return input != nullptr && shown == &input->get();
}

const FiniteExtent& shown_extent(const StageInput& in, MatrixId id) {
  const auto group = static_cast<std::size_t>(scale_group(id.kind));
  return has_lens(in, id) ? in.lens->extents[group] : in.computed.digest.extents[group];
}

ColorRange shown_range(const StageInput& in, MatrixId id) {
  const ScaleGroup group = scale_group(id.kind);
  if (group == ScaleGroup::kMask) return {0, 1, false};
  if (has_lens(in, id)) return resolve_range({RangeMode::kSymmetric, -1, 1}, shown_extent(in, id));
  const ViewSettings& view = in.session.view;
  return resolve_range(group == ScaleGroup::kWeights ? view.weights_range : view.signed_range, shown_extent(in, id));
}

const std::string& shown_colormap(const StageInput& in, MatrixId id) {
  const ViewSettings& view = in.session.view;
  return scale_group(id.kind) == ScaleGroup::kWeights && !has_lens(in, id) ? view.weights_map : view.signed_map;
}

namespace {

class Links {
 public:
  explicit Links(const Trace& trace) : trace_(trace), s_(trace.shapes) {}

  void row(MatrixKind kind, int head, Index r) {
    if (const auto m = trace_.source({kind, head})) list.push_back({{kind, head}, {r, 0, 1, m->cols()}});
  }
  void column(MatrixKind kind, int head, Index c, Index first = 0, Index count = -1) {
    if (const auto m = trace_.source({kind, head}))
      list.push_back({{kind, head}, {first, c, count < 0 ? m->rows() : count, 1}});
  }
  void block(MatrixKind kind, int head, const Rect& rect) {
    if (trace_.source({kind, head}) != nullptr) list.push_back({{kind, head}, rect});
  }
  int kv(int head) const { return kv_head_of(s_, head); }

  std::vector<Highlight> list;

 private:
  const Trace& trace_;
  const Shapes& s_;
};

}  // namespace

std::vector<Highlight> linked_cells(const Trace& trace, const CellRef& cell) {
  Links links(trace);
  const auto [id, row, col] = cell;
  const Shapes& s = trace.shapes;
  switch (id.kind) {
    case MatrixKind::kScores:
      links.row(MatrixKind::kQ, id.head, row);
      links.row(MatrixKind::kK, links.kv(id.head), col);
      break;
    case MatrixKind::kScaled:
      links.block(MatrixKind::kScores, id.head, {row, col, 1, 1});
      links.block(MatrixKind::kAlibi, id.head, {row, col, 1, 1});
      links.block(MatrixKind::kBias, 0, {row, col, 1, 1});
      break;
    case MatrixKind::kAttn:
      links.row(MatrixKind::kScaled, id.head, row);
      links.row(MatrixKind::kKeep, 0, row);
      break;
    case MatrixKind::kHeadsOut:
      links.row(MatrixKind::kAttn, id.head, row);
      links.column(MatrixKind::kV, links.kv(id.head), col);
      break;
    case MatrixKind::kConcat:
      links.block(MatrixKind::kHeadsOut, static_cast<int>(col / s.d_v), {row, col % s.d_v, 1, 1});
      break;
    case MatrixKind::kOut:
      links.row(MatrixKind::kConcat, 0, row);
      links.column(MatrixKind::kWo, 0, col);
      break;
    case MatrixKind::kQ:
    case MatrixKind::kK:
    case MatrixKind::kV: {
      const MatrixKind weight = id.kind == MatrixKind::kQ   ? MatrixKind::kWq
                                : id.kind == MatrixKind::kK ? MatrixKind::kWk
                                                            : MatrixKind::kWv;
      const Index size = id.kind == MatrixKind::kV ? s.d_v : s.d_k;
      links.row(MatrixKind::kX, 0, row);
      links.column(weight, 0, id.head * size + col);
      break;
    }
    default:
      break;
  }
  return links.list;
}

TokenLink linked_tokens(const CellRef& cell) {
  TokenLink link;
  const auto see = [&](Axis axis, Index index) {
    if (axis == Axis::kQueries) link.query = index;
    if (axis == Axis::kKeys) link.key = index;
  };
  see(row_axis(cell.id.kind), cell.row);
  see(col_axis(cell.id.kind), cell.col);
  return link;
}

}  // namespace qkv
