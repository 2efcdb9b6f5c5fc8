#include "core/attention/explain.h"

#include <algorithm>
#include <cmath>

#include "core/attention/position.h"
#include "core/attention/score_scaling.h"

namespace qkv {
namespace {

using VectorD = Eigen::VectorXd;
using RowVectorD = Eigen::RowVectorXd;

const Matrix& q_of(const Trace& trace, int head) { return *trace.q[static_cast<std::size_t>(head)]; }
const Matrix& k_of(const Trace& trace, int head) {
  return *trace.k[static_cast<std::size_t>(kv_head_of(trace.shapes, head))];
}
const Matrix& v_of(const Trace& trace, int head) {
  return *trace.v[static_cast<std::size_t>(kv_head_of(trace.shapes, head))];
}

double sum_of(const std::vector<Term>& terms) {
  double sum = 0;
  for (const Term& term : terms) sum += term.product();
  return sum;
}

MaskReason reason_at(const Trace& trace, Index row, Index key) {
  return mask_reason(trace.problem.options, trace.shapes.nq, trace.shapes.nk, row, key);
}

bool is_hidden(const Trace& trace, Index row, Index key) { return reason_at(trace, row, key) != MaskReason::kVisible; }

bool is_dead(const Trace& trace, Index row) {
  return trace.heads.front().rows[static_cast<std::size_t>(row)].visible == 0;
}

// The terms of a cell of left·right.
std::vector<Term> product_terms(const Matrix& left, Index row, const Matrix& right, Index col) {
  std::vector<Term> terms(static_cast<std::size_t>(left.cols()));
  for (Index k = 0; k < left.cols(); ++k) {
    terms[static_cast<std::size_t>(k)] = {k, static_cast<double>(left(row, k)), static_cast<double>(right(k, col))};
  }
  return terms;
}

// One row as the scores see it: rotated where there is a rope.
MatrixD positioned_row(const Trace& trace, const Matrix& matrix, Index row) {
  return positioned(matrix.row(row), trace.problem.options.rope, row);
}

std::vector<Term> score_terms(const Trace& trace, int head, Index row, Index key) {
  const MatrixD q = positioned_row(trace, q_of(trace, head), row);
  const MatrixD k = positioned_row(trace, k_of(trace, head), key);
  std::vector<Term> terms(static_cast<std::size_t>(q.cols()));
  for (Index c = 0; c < q.cols(); ++c) terms[static_cast<std::size_t>(c)] = {c, q(0, c), k(0, c)};
  return terms;
}

// K of one head as the scores see it, each row rotated when it is first asked for: turning a row takes d_k/2 sines and
// cosines, so a cell pays for the keys that it reads and heads that share K pay once.
class PositionedKeys {
 public:
  PositionedKeys(const Trace& trace, int kv_head)
      : k_(*trace.k[static_cast<std::size_t>(kv_head)]),
        rows_(k_.rows(), k_.cols()),
        is_ready_(static_cast<std::size_t>(k_.rows()), false) {
    if (trace.problem.options.rope) rotation_.emplace(*trace.problem.options.rope, k_.cols());
  }

  auto row(Index key) {
    const auto at = static_cast<std::size_t>(key);
    if (!is_ready_[at]) {
      rows_.row(key) = k_.row(key).cast<double>();
      if (rotation_) rotation_->turn({rows_.row(key).data(), static_cast<std::size_t>(k_.cols())}, key);
      is_ready_[at] = true;
    }
    return rows_.row(key);
  }

 private:
  const Matrix& k_;
  std::optional<RowRotation> rotation_;
  MatrixD rows_;
  std::vector<bool> is_ready_;
};

// Which keys' scores a row is to have: those of hidden keys reach no weight.
enum class ScoredKeys { kAll, kVisible };

// The float64 weights of one query.
struct WeightRow {
  VectorD scaled;  // 0 for keys that were left out
  VectorD weights;
  RowStats stats;
};

WeightRow weight_row(const Trace& trace, int head, Index row, PositionedKeys& k, ScoredKeys which) {
  const AttentionOptions& options = trace.problem.options;
  const VectorD query = positioned_row(trace, q_of(trace, head), row).row(0).transpose();
  const auto keys = static_cast<std::size_t>(trace.shapes.nk);
  WeightRow result;
  result.scaled = VectorD::Zero(trace.shapes.nk);
  std::vector<std::uint8_t> keep(keys);
  for (std::size_t j = 0; j < keys; ++j) {
    const auto key = static_cast<Index>(j);
    keep[j] = is_hidden(trace, row, key) ? 0 : 1;
    if (keep[j] || which == ScoredKeys::kAll) result.scaled(key) = k.row(key).dot(query);
  }
  ScoreScaling(options, trace.shapes, head).apply({result.scaled.data(), keys}, row);
  result.weights.resize(trace.shapes.nk);
  result.stats = softmax_row({result.scaled.data(), keys}, keep, {result.weights.data(), keys}, sink_of(options, head));
  return result;
}

// weight · V for the visible keys: a hidden V takes no part, whatever it holds.
std::vector<Term> value_terms(const Trace& trace, int head, Index row, Index col) {
  PositionedKeys k(trace, kv_head_of(trace.shapes, head));
  const WeightRow weights = weight_row(trace, head, row, k, ScoredKeys::kVisible);
  const Matrix& v = v_of(trace, head);
  std::vector<Term> terms;
  terms.reserve(static_cast<std::size_t>(weights.stats.visible));
  for (Index key = 0; key < v.rows(); ++key) {
    if (is_hidden(trace, row, key)) continue;
    terms.push_back({key, weights.weights(key), static_cast<double>(v(key, col))});
  }
  return terms;
}

// One row of a head's output, [d_v].
RowVectorD head_output_row(const Trace& trace, int head, Index row, PositionedKeys& k) {
  const WeightRow weights = weight_row(trace, head, row, k, ScoredKeys::kVisible);
  const Matrix& v = v_of(trace, head);
  RowVectorD out = RowVectorD::Zero(v.cols());
  for (Index key = 0; key < v.rows(); ++key) {
    if (!is_hidden(trace, row, key)) out += weights.weights(key) * v.row(key).cast<double>();
  }
  return out;
}

void explain_projection(const Trace& trace, Explanation& cell) {
  const auto* source = std::get_if<ProjectedSource>(&trace.problem.source);
  if (!source) return;
  const MatrixKind kind = cell.id.kind;
  const SharedMatrix& w = kind == MatrixKind::kQ ? source->wq : kind == MatrixKind::kK ? source->wk : source->wv;
  const auto& bias = kind == MatrixKind::kQ ? source->bq : kind == MatrixKind::kK ? source->bk : source->bv;
  const Index width = kind == MatrixKind::kV ? trace.shapes.d_v : trace.shapes.d_k;
  const Index column = cell.id.head * width + cell.col;
  cell.terms = product_terms(*source->x, cell.row, *w, column);
  cell.value = sum_of(cell.terms);
  if (!bias) return;
  cell.bias = static_cast<double>(bias->get()(0, column));
  cell.value += *cell.bias;
}

void explain_score(const Trace& trace, Explanation& cell) {
  std::vector<Term> terms = score_terms(trace, cell.id.head, cell.row, cell.col);
  const double scores = sum_of(terms);
  if (cell.id.kind == MatrixKind::kScores) {
    cell.terms = std::move(terms);
    cell.value = scores;
    return;
  }
  cell.scores = scores;
  cell.scale = effective_scale(trace.problem.options, trace.shapes.d_k);
  const ScaledSteps steps =
      ScoreScaling(trace.problem.options, trace.shapes, cell.id.head).steps(scores, cell.row, cell.col);
  cell.after_scale = steps.after_scale;
  cell.after_softcap = steps.after_softcap;
  cell.alibi = steps.alibi;
  cell.bias_value = steps.bias;
  cell.value = steps.value;
}

// What ALiBi or the bias adds to a score.
void explain_added(const Trace& trace, Explanation& cell) {
  const ScaledSteps steps =
      ScoreScaling(trace.problem.options, trace.shapes, cell.id.head).steps(0, cell.row, cell.col);
  if (cell.id.kind == MatrixKind::kAlibi) {
    cell.alibi = cell.value = steps.alibi;
  } else {
    cell.bias_value = cell.value = steps.bias;
  }
}

void explain_weight(const Trace& trace, Explanation& cell) {
  if (is_weights_only(trace.problem.source)) return;
  cell.softmax = explain_softmax_row(trace, cell.id.head, cell.row, &cell.maximum, &cell.denominator);
  cell.value = cell.softmax[static_cast<std::size_t>(cell.col)].weight;
  cell.sink = sink_of(trace.problem.options, cell.id.head);
  if (!cell.sink || cell.denominator == 0) return;
  cell.sink_exponential = std::exp(*cell.sink - cell.maximum);
  cell.sink_weight = cell.sink_exponential / cell.denominator;
}

void explain_head_output(const Trace& trace, int head, Index column, Explanation& cell) {
  cell.head = head;
  cell.column = column;
  cell.terms = value_terms(trace, head, cell.row, column);
  cell.value = sum_of(cell.terms);
}

void explain_output(const Trace& trace, Explanation& cell) {
  const Matrix& wo = **trace.problem.wo;
  const Index d_v = trace.shapes.d_v;
  cell.value = 0;
  std::optional<PositionedKeys> k;
  for (int head = 0; head < trace.shapes.heads; ++head) {
    const int kv_head = kv_head_of(trace.shapes, head);
    if (head % (trace.shapes.heads / trace.shapes.kv_heads) == 0) k.emplace(trace, kv_head);
    const VectorD column = wo.block(head * d_v, cell.col, d_v, 1).cast<double>();
    cell.parts.push_back({head, head_output_row(trace, head, cell.row, *k).dot(column)});
    cell.value += cell.parts.back().value;
  }
  if (!trace.problem.bo) return;
  cell.bias = static_cast<double>(trace.problem.bo->get()(0, cell.col));
  cell.value += *cell.bias;
}

}  // namespace

std::vector<SoftmaxTerm> explain_softmax_row(const Trace& trace, int head, Index row, double* maximum,
                                             double* denominator) {
  const Shapes& shapes = trace.shapes;
  if (head < 0 || head >= shapes.heads || row < 0 || row >= shapes.nq) return {};
  if (is_weights_only(trace.problem.source)) return {};
  PositionedKeys k(trace, kv_head_of(shapes, head));
  const WeightRow weights = weight_row(trace, head, row, k, ScoredKeys::kAll);
  if (maximum) *maximum = weights.stats.max;
  if (denominator) *denominator = weights.stats.denominator;
  std::vector<SoftmaxTerm> terms(static_cast<std::size_t>(shapes.nk));
  for (Index key = 0; key < shapes.nk; ++key) {
    SoftmaxTerm& term = terms[static_cast<std::size_t>(key)];
    term = {.key = key, .scaled = weights.scaled(key), .mask = reason_at(trace, row, key)};
    if (term.mask != MaskReason::kVisible) continue;
    term.exponential = std::exp(term.scaled - weights.stats.max);
    term.weight = weights.weights(key);
  }
  return terms;
}

std::optional<Explanation> explain(const Trace& trace, MatrixId id, Index row, Index col) {
  const auto matrix = trace.source(id);
  if (!matrix || row < 0 || row >= matrix->rows() || col < 0 || col >= matrix->cols()) return std::nullopt;
  Explanation cell;
  cell.id = id;
  cell.row = row;
  cell.col = col;
  matrix->read({row, col, 1, 1}, Eigen::Map<Matrix>(&cell.stored, 1, 1));
  cell.value = static_cast<double>(cell.stored);
  const bool has_keys = row_axis(id.kind) == Axis::kQueries && col_axis(id.kind) == Axis::kKeys;
  if (has_keys) cell.mask = reason_at(trace, row, col);
  switch (id.kind) {
    case MatrixKind::kQ:
    case MatrixKind::kK:
    case MatrixKind::kV:
      explain_projection(trace, cell);
      return cell;
    case MatrixKind::kScores:
    case MatrixKind::kScaled:
      explain_score(trace, cell);
      break;
    case MatrixKind::kAlibi:
    case MatrixKind::kBias:
      explain_added(trace, cell);
      break;
    case MatrixKind::kAttn:
      explain_weight(trace, cell);
      break;
    case MatrixKind::kHeadsOut:
      explain_head_output(trace, id.head, col, cell);
      break;
    case MatrixKind::kConcat: {
      const Index d_v = trace.shapes.d_v;
      explain_head_output(trace, static_cast<int>(col / d_v), col % d_v, cell);
      break;
    }
    case MatrixKind::kOut:
      explain_output(trace, cell);
      break;
    case MatrixKind::kKeep:
      break;
    default:
      return cell;
  }
  cell.dead_row = is_dead(trace, row);
  return cell;
}

}  // namespace qkv
