#include "core/attention/gradient.h"

#include <cmath>
#include <new>
#include <utility>

#include "core/attention/position.h"
#include "core/attention/softmax.h"
#include "core/attention/steps.h"

namespace qkv {
namespace {

using enum MatrixKind;

double times(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

// left·right, where 0 times NaN or Inf is 0.
MatrixD product(const MatrixD& left, const MatrixD& right) {
  if (left.allFinite() && right.allFinite()) return left * right;
  MatrixD result = MatrixD::Zero(left.rows(), right.cols());
  for (Index i = 0; i < left.rows(); ++i) {
    for (Index k = 0; k < left.cols(); ++k) {
      if (left(i, k) == 0) continue;
      for (Index j = 0; j < right.cols(); ++j) result(i, j) += times(left(i, k), right(k, j));
    }
  }
  return result;
}

// `rows` turned back: the transpose of the rotation. A turn by −θ is a turn by θ between two reflections.
MatrixD rotated_back(MatrixD rows, const std::optional<Rope>& rope) {
  if (!rope) return rows;
  const Index d = rows.cols(), pairs = d / 2;
  const auto reflect = [&] {
    for (Index i = 0; i < pairs; ++i) rows.col(rope->style == RopeStyle::kHalf ? i + pairs : 2 * i + 1) *= -1;
  };
  reflect();
  rotate_rows(rows, *rope, 0);
  reflect();
  return rows;
}

MatrixD rotated(MatrixD rows, const std::optional<Rope>& rope) {
  if (rope) rotate_rows(rows, *rope, 0);
  return rows;
}

// The way back through one computation.
class Backward {
 public:
  Backward(const Problem& problem, const Shapes& shapes, const MatrixTable<MatrixD>& steps, const StopFlag* stop)
      : problem_(problem),
        options_(problem.options),
        shapes_(shapes),
        steps_(steps),
        keep_(keep_matrix(problem.options, shapes.nq, shapes.nk)),
        stop_(stop) {}

  Gradient run(const GradientTarget& target) {
    result_.target = target;
    if (target.cell && !is_per_head(target.cell->id.kind)) result_.target.cell->id.head = 0;
    const MatrixKind last = problem_.wo ? kOut : kConcat;
    result_.value =
        target.cell ? steps_.at(target.cell->id)(target.cell->row, target.cell->col) : steps_.at({last}).squaredNorm();
    const MatrixD d_concat = through_output(last);
    run_heads(d_concat);
    result_.by.add(kConcat, concat_of_heads());
    if (const auto* projected = std::get_if<ProjectedSource>(&problem_.source)) through_projections(*projected);
    return std::move(result_);
  }

 private:
  bool stopped() const { return stop_ && stop_->load(std::memory_order_relaxed); }

  // What the target itself puts into the gradient of its own matrix.
  void add_target(MatrixD& gradient, MatrixId id) const {
    const std::optional<MatrixCell>& cell = result_.target.cell;
    if (cell && cell->id == id) gradient(cell->row, cell->col) += 1;
  }

  // ∂L/∂concat, but for what targets among the heads add.
  MatrixD through_output(MatrixKind last) {
    const bool squares = !result_.target.cell;
    MatrixD d_last =
        squares ? MatrixD(2 * steps_.at({last})) : MatrixD::Zero(steps_.at({last}).rows(), steps_.at({last}).cols());
    add_target(d_last, {last, 0});
    if (last == kConcat) return d_last;
    MatrixD d_concat = product(d_last, steps_.at({kWo}).transpose());
    add_target(d_concat, {kConcat, 0});
    result_.by.add(kWo, product(steps_.at({kConcat}).transpose(), d_last));
    if (problem_.bo) result_.by.add(kBo, d_last.colwise().sum());
    result_.by.add(kOut, std::move(d_last));
    return d_concat;
  }

  // ∂L/∂A of a head. A hidden weight is 0 whatever comes in, and out does not read it.
  MatrixD through_values(const MatrixD& d_out, const MatrixD& v, int head) const {
    MatrixD d_attn = product(d_out, v.transpose());
    d_attn = (keep_.array() != 0).select(d_attn, 0.0);
    add_target(d_attn, {kAttn, head});
    return d_attn;
  }

  // ∂L/∂scaled of a head: A·(∂L/∂A − Σ A·∂L/∂A). Adds to the head's sink.
  MatrixD through_softmax(const MatrixD& attn, const MatrixD& d_attn, int head) {
    const std::optional<double> sink = sink_of(options_, head);
    MatrixD d_scaled(attn.rows(), attn.cols());
    for (Index i = 0; i < attn.rows(); ++i) {
      double mean = 0;
      for (Index j = 0; j < attn.cols(); ++j) mean += times(attn(i, j), d_attn(i, j));
      for (Index j = 0; j < attn.cols(); ++j) d_scaled(i, j) = times(attn(i, j), d_attn(i, j) - mean);
      if (sink) result_.sink[static_cast<std::size_t>(head)] -= times(sink_weight(head, i, *sink), mean);
    }
    add_target(d_scaled, {kScaled, head});
    return d_scaled;
  }

  double sink_weight(int head, Index i, double sink) const {
    const auto keys = static_cast<std::size_t>(shapes_.nk);
    std::vector<double> weights(keys);
    return softmax_row({steps_.at({kScaled, head}).row(i).data(), keys}, {keep_.row(i).data(), keys}, weights, sink)
        .sink;
  }

  // ∂L/∂scores of a head: back through bias and ALiBi (1), softcap (1 − tanh²) and scale.
  MatrixD through_scaling(const MatrixD& scores, const MatrixD& d_scaled, int head) const {
    const double scale = effective_scale(options_, shapes_.d_k);
    MatrixD d_scores(scores.rows(), scores.cols());
    for (Index n = 0; n < scores.size(); ++n) {
      double slope = scale;
      if (options_.softcap) {
        const double tangent = std::tanh(scores.data()[n] * scale / static_cast<double>(*options_.softcap));
        slope *= 1 - tangent * tangent;
      }
      d_scores.data()[n] = times(d_scaled.data()[n], slope);
    }
    add_target(d_scores, {kScores, head});
    return d_scores;
  }

  void run_heads(const MatrixD& d_concat) {
    MatrixD* d_bias = options_.bias ? &result_.by.add(kBias, MatrixD::Zero(shapes_.nq, shapes_.nk)) : nullptr;
    result_.sink.assign(options_.sink.size(), 0.0);
    const int group = shapes_.heads / shapes_.kv_heads;
    for (int kv = 0; kv < shapes_.kv_heads; ++kv) {
      const MatrixD k = rotated(steps_.at({kK, kv}), options_.rope);
      MatrixD d_k = MatrixD::Zero(shapes_.nk, shapes_.d_k), d_v = MatrixD::Zero(shapes_.nk, shapes_.d_v);
      for (int head = kv * group; head < (kv + 1) * group && !stopped(); ++head) {
        MatrixD d_out = d_concat.middleCols(head * shapes_.d_v, shapes_.d_v);
        add_target(d_out, {kHeadsOut, head});
        const MatrixD& attn = steps_.at({kAttn, head});
        const MatrixD q = rotated(steps_.at({kQ, head}), options_.rope);
        MatrixD d_attn = through_values(d_out, steps_.at({kV, kv}), head);
        MatrixD d_scaled = through_softmax(attn, d_attn, head);
        if (d_bias) *d_bias += d_scaled;
        MatrixD d_scores = through_scaling(steps_.at({kScores, head}), d_scaled, head);
        d_v += product(attn.transpose(), d_out);
        d_k += product(d_scores.transpose(), q);
        result_.by.add(kQ, rotated_back(product(d_scores, k), options_.rope));
        result_.by.add(kScores, std::move(d_scores));
        result_.by.add(kScaled, std::move(d_scaled));
        result_.by.add(kAttn, std::move(d_attn));
        result_.by.add(kHeadsOut, std::move(d_out));
      }
      result_.by.add(kK, rotated_back(std::move(d_k), options_.rope));
      result_.by.add(kV, std::move(d_v));
    }
  }

  MatrixD side_by_side(MatrixKind kind, Index rows, int heads, Index width) const {
    MatrixD all(rows, heads * width);
    for (int head = 0; head < heads && !stopped(); ++head) {
      all.middleCols(head * width, width) = result_.by.at({kind, head});
    }
    return all;
  }
  MatrixD concat_of_heads() const { return side_by_side(kHeadsOut, shapes_.nq, shapes_.heads, shapes_.d_v); }

  void through_projections(const ProjectedSource& source) {
    struct Part {
      MatrixKind product, weights, bias;
      bool has_bias;
      int heads;
      Index width;
    };
    const Part parts[] = {{kQ, kWq, kBq, source.bq.has_value(), shapes_.heads, shapes_.d_k},
                          {kK, kWk, kBk, source.bk.has_value(), shapes_.kv_heads, shapes_.d_k},
                          {kV, kWv, kBv, source.bv.has_value(), shapes_.kv_heads, shapes_.d_v}};
    const MatrixD& x = steps_.at({kX});
    MatrixD d_x = MatrixD::Zero(x.rows(), x.cols());
    for (const Part& part : parts) {
      if (stopped()) return;
      const MatrixD d_product = side_by_side(part.product, x.rows(), part.heads, part.width);
      d_x += product(d_product, steps_.at({part.weights}).transpose());
      result_.by.add(part.weights, product(x.transpose(), d_product));
      if (part.has_bias) result_.by.add(part.bias, d_product.colwise().sum());
    }
    result_.by.add(kX, std::move(d_x));
  }

  const Problem& problem_;
  const AttentionOptions& options_;
  const Shapes& shapes_;
  const MatrixTable<MatrixD>& steps_;
  KeepMatrix keep_;
  const StopFlag* stop_;
  Gradient result_;
};

// Why the target is no cell of this computation, if it is none.
std::optional<Error> check_target(const GradientTarget& target, const Shapes& shapes,
                                  const MatrixTable<MatrixD>& steps) {
  if (!target.cell) return std::nullopt;
  const auto& [id, row, col] = *target.cell;
  const std::string name(file_key(id.kind));
  if (!can_be_target(id.kind)) {
    return bad_input(name +
                     " cannot be the target of a gradient: it needs to be a cell of out, concat, heads_out, "
                     "attn, scaled or scores");
  }
  const MatrixD* matrix = steps.find(id);
  if (matrix == nullptr && !is_per_head(id.kind)) return bad_input(name + " is not there: this session has no wo");
  if (matrix == nullptr) {
    return bad_input("there is no head " + std::to_string(id.head) + " of " + name + ": it needs to be 0 to " +
                     std::to_string(shapes.heads - 1));
  }
  if (row >= 0 && row < matrix->rows() && col >= 0 && col < matrix->cols()) return std::nullopt;
  return bad_input(name + " has no cell at row " + std::to_string(row) + ", column " + std::to_string(col) +
                   ": rows are 0 to " + std::to_string(matrix->rows() - 1) + ", columns 0 to " +
                   std::to_string(matrix->cols() - 1));
}

}  // namespace

bool can_be_target(MatrixKind kind) {
  return kind == kOut || kind == kConcat || kind == kHeadsOut || kind == kAttn || kind == kScaled || kind == kScores;
}

std::string target_words(const GradientTarget& target, const Shapes& shapes, Index first) {
  if (!target.cell) return std::string("Σ ") + (shapes.d_out > 0 ? "Out²" : "O²");
  const auto& [id, row, col] = *target.cell;
  const std::string words =
      std::string(symbol(id.kind)) + "[" + std::to_string(row + first) + ", " + std::to_string(col + first) + "]";
  return is_per_head(id.kind) && shapes.heads > 1 ? words + " of head " + std::to_string(id.head + first) : words;
}

Result<Gradient> gradient(const Problem& problem, const GradientTarget& target, const StopFlag* stop) {
  const Result<MatrixTable<MatrixD>> steps = steps_in_float64(problem, stop);
  if (!steps.ok()) return steps.error();
  const Shapes shapes = check_shapes(problem).value();
  if (std::optional<Error> error = check_target(target, shapes, steps.value())) return *error;
  try {
    Gradient result = Backward(problem, shapes, steps.value(), stop).run(target);
    if (stop && stop->load()) return Error{ErrorCode::kCancelled, "the computation was stopped"};
    return result;
  } catch (const std::bad_alloc&) {
    return unsupported("not enough memory for the gradient of " + std::to_string(shapes.heads) + " heads of " +
                       std::to_string(shapes.nq) + "×" + std::to_string(shapes.nk) +
                       " scores: use fewer tokens or heads");
  }
}

}  // namespace qkv
