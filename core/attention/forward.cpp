#include "core/attention/forward.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>
#include <string>

#include "core/attention/position.h"
#include "core/attention/score_scaling.h"

namespace qkv {
namespace {

// Rows per matrix product: the float64 intermediates stay small, and a pass that is stopped ends soon.
constexpr Index kBlockRows = 64;

bool is_stopped(const StopFlag* stop) { return stop && stop->load(std::memory_order_relaxed); }

// left·w + bias in float64, rounded once. nullopt when stopped.
template <class Left>
std::optional<Matrix> affine(const Left& left, const Matrix& w, const std::optional<SharedMatrix>& bias,
                             const StopFlag* stop) {
  const MatrixD weights = w.cast<double>();
  Matrix result(left.rows(), w.cols());
  for (Index row = 0; row < left.rows(); row += kBlockRows) {
    if (is_stopped(stop)) return std::nullopt;
    const Index count = std::min(kBlockRows, left.rows() - row);
    const MatrixD block = left.middleRows(row, count).template cast<double>();
    MatrixD product = block * weights;
    if (bias) product.rowwise() += bias->get().row(0).cast<double>();
    result.middleRows(row, count) = product.cast<float>();
  }
  return result;
}

// Appends the heads that lie side by side in x·w + bias. False when stopped.
bool project_heads(const SharedMatrix& x, const SharedMatrix& w, const std::optional<SharedMatrix>& bias, int heads,
                   const StopFlag* stop, std::vector<SharedMatrix>& out) {
  const std::optional<Matrix> product = affine(*x, *w, bias, stop);
  if (!product) return false;
  const Index width = product->cols() / heads;
  for (int h = 0; h < heads; ++h) out.emplace_back(Matrix(product->middleCols(h * width, width)));
  return true;
}

std::optional<DirectSource> project_unless_stopped(const ProjectedSource& source, const Shapes& shapes,
                                                   const StopFlag* stop) {
  DirectSource direct;
  if (!project_heads(source.x, source.wq, source.bq, shapes.heads, stop, direct.q)) return std::nullopt;
  if (!project_heads(source.x, source.wk, source.bk, shapes.kv_heads, stop, direct.k)) return std::nullopt;
  if (!project_heads(source.x, source.wv, source.bv, shapes.kv_heads, stop, direct.v)) return std::nullopt;
  return direct;
}

struct NonFinite {
  Index key, col;
  double value;
};

// K, rotated where there is a rope, and V of one head in float64. The matrix product reads every V, so that its NaN and
// Inf are 0 there (0·NaN is NaN, and hidden keys have weight 0); they are added for visible keys alone.
struct KeysAndValues {
  KeysAndValues(const Matrix& keys, const Matrix& values, const std::optional<Rope>& rope)
      : k(positioned(keys, rope)), v(values.cast<double>()) {
    for (Index key = 0; key < v.rows(); ++key) {
      for (Index col = 0; col < v.cols(); ++col) {
        if (std::isfinite(v(key, col))) continue;
        non_finite.push_back({key, col, v(key, col)});
        v(key, col) = 0;
      }
    }
  }

  MatrixD k, v;
  std::vector<NonFinite> non_finite;
};

// weights·V, [block rows, d_v]. `first_row` is the query of the first row of weights.
MatrixD weigh_values(const MatrixD& weights, const KeysAndValues& kv, const KeepMatrix& keep, Index first_row) {
  MatrixD out = weights * kv.v;
  for (Index row = 0; row < weights.rows(); ++row) {
    for (const NonFinite& cell : kv.non_finite) {
      if (keep(first_row + row, cell.key)) out(row, cell.col) += weights(row, cell.key) * cell.value;
    }
  }
  return out;
}

// What a head reads beside its Q, K and V.
struct HeadInputs {
  const KeepMatrix& keep;
  const std::optional<Rope>& rope;
  ScoreScaling scaling;
  std::optional<double> sink;
  const StopFlag* stop;
};

// Fills `head`, and its columns of the float64 concat. False when stopped.
bool run_head(const Matrix& q, const KeysAndValues& kv, const HeadInputs& inputs, HeadTrace& head,
              Eigen::Ref<MatrixD, 0, Eigen::OuterStride<>> concat) {
  const Index nq = q.rows(), nk = kv.k.rows();
  head.scores.resize(nq, nk);
  head.scaled.resize(nq, nk);
  head.attn.resize(nq, nk);
  head.out.resize(nq, kv.v.cols());
  head.rows.reserve(static_cast<std::size_t>(nq));
  for (Index first = 0; first < nq; first += kBlockRows) {
    if (is_stopped(inputs.stop)) return false;
    const Index count = std::min(kBlockRows, nq - first);
    const MatrixD queries = positioned(q.middleRows(first, count), inputs.rope, first);
    MatrixD cells = queries * kv.k.transpose();
    head.scores.middleRows(first, count) = cells.cast<float>();
    const auto keys = static_cast<std::size_t>(nk);
    for (Index row = 0; row < count; ++row) inputs.scaling.apply({cells.row(row).data(), keys}, first + row);
    head.scaled.middleRows(first, count) = cells.cast<float>();
    for (Index row = 0; row < count; ++row) {
      const std::span<double> of_row(cells.row(row).data(), keys);
      head.rows.push_back(softmax_row(of_row, {inputs.keep.row(first + row).data(), keys}, of_row, inputs.sink));
    }
    head.attn.middleRows(first, count) = cells.cast<float>();
    concat.middleRows(first, count) = weigh_values(cells, kv, inputs.keep, first);
    head.out.middleRows(first, count) = concat.middleRows(first, count).cast<float>();
  }
  return true;
}

// Fills everything of `trace` that follows from its Q, K and V. False when stopped.
bool run_heads(Trace& trace, const StopFlag* stop) {
  const Shapes& shapes = trace.shapes;
  const AttentionOptions& options = trace.problem.options;
  const KeepMatrix keep = keep_matrix(options, shapes.nq, shapes.nk);
  trace.keep = keep.cast<float>();
  for (int head = 0; options.alibi && head < shapes.heads; ++head) {
    const Index shift = query_shift(options, shapes.nq, shapes.nk);
    trace.alibi.push_back(alibi_term(head, shapes.heads, shapes.nq, shapes.nk, shift));
  }

  MatrixD concat(shapes.nq, shapes.heads * shapes.d_v);
  trace.heads.resize(static_cast<std::size_t>(shapes.heads));
  const int group = shapes.heads / shapes.kv_heads;
  for (int kv_head = 0; kv_head < shapes.kv_heads; ++kv_head) {
    const auto index = static_cast<std::size_t>(kv_head);
    const KeysAndValues kv(*trace.k[index], *trace.v[index], options.rope);
    for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      const auto h = static_cast<std::size_t>(head);
      const HeadInputs inputs = {keep, options.rope, {options, shapes, head}, sink_of(options, head), stop};
      if (!run_head(*trace.q[h], kv, inputs, trace.heads[h], concat.middleCols(head * shapes.d_v, shapes.d_v))) {
        return false;
      }
    }
  }
  trace.concat = concat.cast<float>();
  if (!trace.problem.wo) return true;
  // From the unrounded concat, so that the output is off by its own rounding alone.
  trace.out = affine(concat, **trace.problem.wo, trace.problem.bo, stop);
  return trace.out.has_value();
}

Result<Trace> run(const Problem& problem, const Shapes& shapes, const StopFlag* stop) {
  const auto start = std::chrono::steady_clock::now();
  const Error cancelled = {ErrorCode::kCancelled, "the computation was stopped"};
  Trace trace;
  trace.problem = problem;
  trace.shapes = shapes;
  const auto* projected = std::get_if<ProjectedSource>(&problem.source);
  std::optional<DirectSource> source = projected ? project_unless_stopped(*projected, shapes, stop)
                                                 : std::optional(std::get<DirectSource>(problem.source));
  if (!source) return cancelled;
  trace.q = std::move(source->q);
  trace.k = std::move(source->k);
  trace.v = std::move(source->v);
  if (!run_heads(trace, stop)) return cancelled;
  trace.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return trace;
}

Index count_non_finite(const SharedMatrix& matrix) { return matrix.get().size() - matrix->array().isFinite().count(); }

Index count_non_finite(const std::vector<SharedMatrix>& heads) {
  Index count = 0;
  for (const SharedMatrix& head : heads) count += count_non_finite(head);
  return count;
}

Index count_non_finite(const std::optional<SharedMatrix>& matrix) { return matrix ? count_non_finite(*matrix) : 0; }

// −Inf is how a bias hides a key.
Index count_wrong_biases(const std::optional<SharedMatrix>& bias) {
  if (!bias) return 0;
  const auto is_wrong = [](float value) { return std::isnan(value) || value == HUGE_VALF; };
  return std::count_if(bias->get().data(), bias->get().data() + bias->get().size(), is_wrong);
}

Index count_non_finite(const Source& source) {
  if (const auto* direct = std::get_if<DirectSource>(&source)) {
    return count_non_finite(direct->q) + count_non_finite(direct->k) + count_non_finite(direct->v);
  }
  const auto& projected = std::get<ProjectedSource>(source);
  return count_non_finite(projected.x) + count_non_finite(projected.wq) + count_non_finite(projected.wk) +
         count_non_finite(projected.wv) + count_non_finite(projected.bq) + count_non_finite(projected.bk) +
         count_non_finite(projected.bv);
}

const Matrix* pointer_to(const std::optional<SharedMatrix>& matrix) { return matrix ? &matrix->get() : nullptr; }

const Matrix* head_of(const std::vector<SharedMatrix>& heads, int head) {
  return head >= 0 && static_cast<std::size_t>(head) < heads.size() ? &heads[static_cast<std::size_t>(head)].get()
                                                                    : nullptr;
}

const Matrix* head_of(const std::vector<HeadTrace>& heads, int head, Matrix HeadTrace::*member) {
  return head >= 0 && static_cast<std::size_t>(head) < heads.size() ? &(heads[static_cast<std::size_t>(head)].*member)
                                                                    : nullptr;
}

const Matrix* find_projection(const Source& source, MatrixKind kind) {
  const auto* projected = std::get_if<ProjectedSource>(&source);
  if (!projected) return nullptr;
  switch (kind) {
    case MatrixKind::kX:
      return &projected->x.get();
    case MatrixKind::kWq:
      return &projected->wq.get();
    case MatrixKind::kWk:
      return &projected->wk.get();
    case MatrixKind::kWv:
      return &projected->wv.get();
    case MatrixKind::kBq:
      return pointer_to(projected->bq);
    case MatrixKind::kBk:
      return pointer_to(projected->bk);
    case MatrixKind::kBv:
      return pointer_to(projected->bv);
    default:
      return nullptr;
  }
}

}  // namespace

const Matrix* Trace::find(MatrixId id) const {
  switch (id.kind) {
    case MatrixKind::kQ:
      return head_of(q, id.head);
    case MatrixKind::kK:
      return head_of(k, id.head);
    case MatrixKind::kV:
      return head_of(v, id.head);
    case MatrixKind::kScores:
      return head_of(heads, id.head, &HeadTrace::scores);
    case MatrixKind::kAlibi:
      return id.head >= 0 && static_cast<std::size_t>(id.head) < alibi.size()
                 ? &alibi[static_cast<std::size_t>(id.head)]
                 : nullptr;
    case MatrixKind::kBias:
      return pointer_to(problem.options.bias);
    case MatrixKind::kScaled:
      return head_of(heads, id.head, &HeadTrace::scaled);
    case MatrixKind::kAttn:
      return head_of(heads, id.head, &HeadTrace::attn);
    case MatrixKind::kHeadsOut:
      return head_of(heads, id.head, &HeadTrace::out);
    case MatrixKind::kKeep:
      return &keep;
    case MatrixKind::kConcat:
      return &concat;
    case MatrixKind::kWo:
      return pointer_to(problem.wo);
    case MatrixKind::kBo:
      return pointer_to(problem.bo);
    case MatrixKind::kOut:
      return out ? &*out : nullptr;
    default:
      return find_projection(problem.source, id.kind);
  }
}

Result<Trace> forward(const Problem& problem, const StopFlag* stop) {
  const Result<Shapes> shapes = check_shapes(problem);
  if (!shapes.ok()) return shapes.error();
  try {
    return run(problem, shapes.value(), stop);
  } catch (const std::bad_alloc&) {
    const Shapes& s = shapes.value();
    return unsupported("not enough memory to keep every step of " + std::to_string(s.heads) + " heads of " +
                       std::to_string(s.nq) + "×" + std::to_string(s.nk) + " scores: use fewer tokens or heads");
  }
}

DirectSource project(const ProjectedSource& source, const Shapes& shapes) {
  return *project_unless_stopped(source, shapes, nullptr);
}

double expected_row_sum(const Trace& trace, int head, Index row) {
  const RowStats& stats = trace.heads[static_cast<std::size_t>(head)].rows[static_cast<std::size_t>(row)];
  return stats.visible == 0 ? 0 : 1 - stats.sink;
}

double estimated_flops(const Shapes& shapes) {
  const auto nq = static_cast<double>(shapes.nq), nk = static_cast<double>(shapes.nk);
  const auto d_k = static_cast<double>(shapes.d_k), d_v = static_cast<double>(shapes.d_v);
  const double heads = shapes.heads, kv_heads = shapes.kv_heads;
  // A product of [n, k] and [k, m] takes 2·n·k·m; a softmax about 20 a cell, most of it in exp.
  const double projections = 2 * nq * static_cast<double>(shapes.d_model) * (heads * d_k + kv_heads * (d_k + d_v));
  const double attention = heads * nq * nk * (2 * d_k + 20 + 2 * d_v);
  const double output = 2 * nq * heads * d_v * static_cast<double>(shapes.d_out);
  return projections + attention + output;
}

TraceWarnings find_warnings(const Trace& trace) {
  TraceWarnings warnings;
  if (!trace.heads.empty()) {
    const std::vector<RowStats>& rows = trace.heads[0].rows;
    warnings.dead_rows = std::count_if(rows.begin(), rows.end(), [](const RowStats& row) { return row.visible == 0; });
  }
  warnings.nan_inputs = count_non_finite(trace.problem.source) + count_non_finite(trace.problem.wo) +
                        count_non_finite(trace.problem.bo) + count_wrong_biases(trace.problem.options.bias);
  if (trace.out) {
    warnings.nan_outputs = trace.out->array().isNaN().count();
  } else {
    for (const HeadTrace& head : trace.heads) warnings.nan_outputs += head.out.array().isNaN().count();
  }
  return warnings;
}

}  // namespace qkv
