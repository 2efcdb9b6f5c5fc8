#include "core/attention/exact_pass.h"

#include <algorithm>
#include <cmath>

#include "core/attention/position.h"
#include "core/attention/score_scaling.h"

namespace qkv {
namespace {

// Rows per matrix product: the float64 intermediates stay small, and a pass that is stopped ends soon.
constexpr Index kBlockRows = 64;

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
  const auto keys = static_cast<std::size_t>(nk);
  Matrix scores(nq, nk), scaled(nq, nk), attn(nq, nk), out(nq, kv.v.cols());
  head.rows.reserve(static_cast<std::size_t>(nq));
  for (Index first = 0; first < nq; first += kBlockRows) {
    if (is_stopped(inputs.stop)) return false;
    const Index count = std::min(kBlockRows, nq - first);
    const MatrixD queries = positioned(q.middleRows(first, count), inputs.rope, first);
    MatrixD cells = queries * kv.k.transpose();
    scores.middleRows(first, count) = cells.cast<float>();
    for (Index row = 0; row < count; ++row) inputs.scaling.apply({cells.row(row).data(), keys}, first + row);
    scaled.middleRows(first, count) = cells.cast<float>();
    for (Index row = 0; row < count; ++row) {
      const std::span<double> of_row(cells.row(row).data(), keys);
      head.rows.push_back(softmax_row(of_row, {inputs.keep.row(first + row).data(), keys}, of_row, inputs.sink));
    }
    attn.middleRows(first, count) = cells.cast<float>();
    concat.middleRows(first, count) = weigh_values(cells, kv, inputs.keep, first);
    out.middleRows(first, count) = concat.middleRows(first, count).cast<float>();
  }
  head.scores = std::move(scores);
  head.scaled = std::move(scaled);
  head.attn = std::move(attn);
  head.out = std::move(out);
  return true;
}

// Fills everything of `trace` that follows from its Q, K and V. False when stopped.
bool run_heads(Trace& trace, const StopFlag* stop) {
  const Shapes& shapes = trace.shapes;
  const AttentionOptions& options = trace.problem.options;
  const KeepMatrix keep = keep_matrix(options, shapes.nq, shapes.nk);
  set_lazy_masks(trace);

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
  set_lazy_concat(trace);
  if (!trace.problem.wo) return true;
  // From the unrounded concat, so that the output is off by its own rounding alone.
  trace.out = affine(concat, **trace.problem.wo, trace.problem.bo, stop);
  return trace.out.has_value();
}

}  // namespace

bool exact_pass(Trace& trace, const StopFlag* stop) {
  const auto* projected = std::get_if<ProjectedSource>(&trace.problem.source);
  std::optional<DirectSource> source = projected ? project_unless_stopped(*projected, trace.shapes, stop)
                                                 : std::optional(std::get<DirectSource>(trace.problem.source));
  if (!source) return false;
  trace.q = std::move(source->q);
  trace.k = std::move(source->k);
  trace.v = std::move(source->v);
  return run_heads(trace, stop);
}

DirectSource project(const ProjectedSource& source, const Shapes& shapes) {
  return *project_unless_stopped(source, shapes, nullptr);
}

}  // namespace qkv
