#include "core/attention/steps.h"

#include <cmath>
#include <cstdlib>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "core/attention/position.h"

namespace qkv {
namespace {

template <class T>
using Dense = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Row = Eigen::Matrix<T, 1, Eigen::Dynamic, Eigen::RowMajor>;

// Works in T and stores in a format that T holds. Ends early, with a table that is of no use, when it is stopped.
template <class T>
class Stepper {
 public:
  Stepper(NumberFormat format, const Problem& problem, const Shapes& shapes, const StopFlag* stop)
      : format_(format),
        problem_(problem),
        options_(problem.options),
        shapes_(shapes),
        keep_(keep_matrix(problem.options, shapes.nq, shapes.nk)),
        stop_(stop) {}

  MatrixTable<Dense<T>> run() {
    if (const auto* direct = std::get_if<DirectSource>(&problem_.source)) {
      for (const SharedMatrix& q : direct->q) table_.add(MatrixKind::kQ, stored(*q));
      for (const SharedMatrix& k : direct->k) table_.add(MatrixKind::kK, stored(*k));
      for (const SharedMatrix& v : direct->v) table_.add(MatrixKind::kV, stored(*v));
    } else {
      project(std::get<ProjectedSource>(problem_.source));
    }
    if (options_.bias) bias_ = &table_.add(MatrixKind::kBias, stored(**options_.bias));
    Dense<T> concat(shapes_.nq, shapes_.heads * shapes_.d_v);
    for (int head = 0; head < shapes_.heads; ++head) {
      if (stopped()) return {};
      run_head(head);
      concat.middleCols(head * shapes_.d_v, shapes_.d_v) = table_.at({MatrixKind::kHeadsOut, head});
    }
    if (problem_.wo) {
      const Dense<T>& wo = table_.add(MatrixKind::kWo, stored(**problem_.wo));
      const Dense<T>* bo = problem_.bo ? &table_.add(MatrixKind::kBo, stored(**problem_.bo)) : nullptr;
      table_.add(MatrixKind::kOut, product(concat, wo, bo));
    }
    table_.add(MatrixKind::kConcat, std::move(concat));
    return std::move(table_);
  }

 private:
  bool stopped() const { return stop_ && stop_->load(std::memory_order_relaxed); }

  T stored(T value) const {
    if constexpr (std::is_same_v<T, float>) return round_to(format_, value);
    return value;
  }
  Dense<T> stored(const Matrix& input) const {
    return input.unaryExpr([this](float value) { return stored(static_cast<T>(value)); });
  }

  // left·right + bias, [n, m]. The sum of a cell runs along the index: each step adds one row of `right`.
  Dense<T> product(const Dense<T>& left, const Dense<T>& right, const Dense<T>* bias = nullptr) const {
    Dense<T> result(left.rows(), right.cols());
    Row<T> sum(right.cols());
    for (Index row = 0; row < left.rows() && !stopped(); ++row) {
      sum.setZero();
      for (Index k = 0; k < left.cols(); ++k) sum += left(row, k) * right.row(k);
      if (bias) sum += bias->row(0);
      for (Index col = 0; col < sum.cols(); ++col) result(row, col) = stored(sum(col));
    }
    return result;
  }

  void project_part(MatrixKind weights, MatrixKind bias, MatrixKind heads_kind, const SharedMatrix& w,
                    const std::optional<SharedMatrix>& b, int heads) {
    const Dense<T>& kept = table_.add(weights, stored(*w));
    const Dense<T>* kept_bias = b ? &table_.add(bias, stored(**b)) : nullptr;
    const Dense<T> all = product(table_.at({MatrixKind::kX}), kept, kept_bias);
    const Index width = all.cols() / heads;
    for (int head = 0; head < heads; ++head) table_.add(heads_kind, all.middleCols(head * width, width));
  }

  void project(const ProjectedSource& source) {
    table_.add(MatrixKind::kX, stored(*source.x));
    project_part(MatrixKind::kWq, MatrixKind::kBq, MatrixKind::kQ, source.wq, source.bq, source.heads);
    project_part(MatrixKind::kWk, MatrixKind::kBk, MatrixKind::kK, source.wk, source.bk, source.kv_heads);
    project_part(MatrixKind::kWv, MatrixKind::kBv, MatrixKind::kV, source.wv, source.bv, source.kv_heads);
  }

  // Position 0 is left as it is, as by rotate_rows().
  Dense<T> rotated(Dense<T> rows) const {
    if (!options_.rope) return rows;
    const Index pairs = rows.cols() / 2;
    const bool half = options_.rope->style == RopeStyle::kHalf;
    for (Index i = 0; i < pairs; ++i) {
      const Index left = half ? i : 2 * i, right = half ? i + pairs : 2 * i + 1;
      const double frequency = std::pow(static_cast<double>(options_.rope->base),
                                        -2.0 * static_cast<double>(i) / static_cast<double>(rows.cols()));
      for (Index row = 1; row < rows.rows(); ++row) {
        const double angle = static_cast<double>(row) * frequency;
        const T cosine = static_cast<T>(std::cos(angle)), sine = static_cast<T>(std::sin(angle));
        const T x = rows(row, left), y = rows(row, right);
        rows(row, left) = stored(x * cosine - y * sine);
        rows(row, right) = stored(y * cosine + x * sine);
      }
    }
    return rows;
  }

  Dense<T> scaled(const Dense<T>& scores, int head) const {
    const T scale = static_cast<T>(effective_scale(options_, shapes_.d_k));
    const T slope = options_.alibi ? static_cast<T>(alibi_slope(head, shapes_.heads)) : T{0};
    const Index shift = query_shift(options_, shapes_.nq, shapes_.nk);
    Dense<T> result(scores.rows(), scores.cols());
    for (Index i = 0; i < scores.rows() && !stopped(); ++i) {
      for (Index j = 0; j < scores.cols(); ++j) {
        T value = scores(i, j) * scale;
        if (options_.softcap) {
          const T cap = static_cast<T>(*options_.softcap);
          value = cap * std::tanh(value / cap);
        }
        if (slope != 0) value -= slope * static_cast<T>(std::abs(i + shift - j));
        if (bias_) value += (*bias_)(i, j);
        result(i, j) = stored(value);
      }
    }
    return result;
  }

  // exp(scaled − max) / Σ over the visible keys and the sink; hidden keys and dead rows 0.
  Row<T> weights(const Dense<T>& scaled, Index i, std::optional<T> sink) const {
    Row<T> result = Row<T>::Zero(scaled.cols());
    bool first = !sink;
    bool dead = true;
    T max = sink.value_or(T{0});
    for (Index j = 0; j < scaled.cols(); ++j) {
      if (!keep_(i, j)) continue;
      dead = false;
      // A NaN stays the maximum: no comparison with it is true.
      if (first || scaled(i, j) > max || std::isnan(scaled(i, j))) max = scaled(i, j);
      first = false;
    }
    if (dead) return result;
    T sum = 0;
    for (Index j = 0; j < scaled.cols(); ++j) {
      if (keep_(i, j)) result(j) = std::exp(scaled(i, j) - max);
      sum += result(j);
    }
    if (sink) sum += std::exp(*sink - max);
    for (Index j = 0; j < scaled.cols(); ++j) {
      if (keep_(i, j)) result(j) = stored(result(j) / sum);
    }
    return result;
  }

  void run_head(int head) {
    const int kv = kv_head_of(shapes_, head);
    const Dense<T> q = rotated(table_.at({MatrixKind::kQ, head}));
    const Dense<T> keys_across = rotated(table_.at({MatrixKind::kK, kv})).transpose();
    const Dense<T>& v = table_.at({MatrixKind::kV, kv});
    const Dense<T>& scores = table_.add(MatrixKind::kScores, product(q, keys_across));
    const Dense<T>& after = table_.add(MatrixKind::kScaled, scaled(scores, head));
    std::optional<T> sink;
    if (const std::optional<double> logit = sink_of(options_, head)) sink = stored(static_cast<T>(*logit));
    Dense<T>& attn = table_.add(MatrixKind::kAttn, Dense<T>(shapes_.nq, shapes_.nk));
    Dense<T>& out = table_.add(MatrixKind::kHeadsOut, Dense<T>(shapes_.nq, shapes_.d_v));
    Row<T> sum(shapes_.d_v);
    for (Index i = 0; i < shapes_.nq && !stopped(); ++i) {
      attn.row(i) = weights(after, i, sink);
      sum.setZero();
      for (Index j = 0; j < shapes_.nk; ++j) {
        if (keep_(i, j)) sum += attn(i, j) * v.row(j);  // a hidden V is never touched, not even NaN
      }
      for (Index c = 0; c < shapes_.d_v; ++c) out(i, c) = stored(sum(c));
    }
  }

  NumberFormat format_;
  const Problem& problem_;
  const AttentionOptions& options_;
  const Shapes& shapes_;
  KeepMatrix keep_;
  const StopFlag* stop_;
  const Dense<T>* bias_ = nullptr;
  MatrixTable<Dense<T>> table_;
};

template <class T>
Result<MatrixTable<Dense<T>>> run(NumberFormat format, const Problem& problem, const StopFlag* stop) {
  const Result<Shapes> shapes = check_shapes(problem);
  if (!shapes.ok()) return shapes.error();
  if (is_weights_only(problem.source)) {
    return unsupported(
        "gradients and number formats need q, k and v, but only attention weights are given: open a file with q, k "
        "and v");
  }
  try {
    MatrixTable<Dense<T>> table = Stepper<T>(format, problem, shapes.value(), stop).run();
    if (stop && stop->load()) return Error{ErrorCode::kCancelled, "the computation was stopped"};
    return table;
  } catch (const std::bad_alloc&) {
    const Shapes& s = shapes.value();
    return unsupported("not enough memory to keep every step in " + std::string(format_name(format)) + " of " +
                       std::to_string(s.heads) + " heads of " + std::to_string(s.nq) + "×" + std::to_string(s.nk) +
                       " scores: use fewer tokens or heads");
  }
}

}  // namespace

Result<MatrixTable<MatrixD>> steps_in_float64(const Problem& problem, const StopFlag* stop) {
  return run<double>(NumberFormat::kFloat64, problem, stop);
}

Result<MatrixTable<Matrix>> steps_in(NumberFormat format, const Problem& problem, const StopFlag* stop) {
  return run<float>(format, problem, stop);
}

}  // namespace qkv
