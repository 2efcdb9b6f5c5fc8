#include "core/attention/altered_pass.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/attention/difference.h"
#include "core/attention/position.h"

namespace qkv {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double slope_of(AlibiSlopes slopes, int head, int heads) {
  switch (slopes) {
    case AlibiSlopes::kOurs:
      return alibi_slope(head, heads);
    case AlibiSlopes::kFromZero:
      return std::exp2(-8.0 * head / heads);
    case AlibiSlopes::kPlainPower:
      return std::exp2(-8.0 * (head + 1) / heads);
  }
  return 0;
}

// exp in float32, ±Inf beyond its range.
double float_exp(double value) { return static_cast<double>(std::exp(static_cast<float>(value))); }

}  // namespace

AlteredPass::AlteredPass(InputCache& cache, const Altered& altered)
    : problem_(cache.problem()),
      shapes_(cache.shapes()),
      altered_(altered),
      inputs_(cache.get(altered.inputs, altered.format)),
      rows_(static_cast<std::size_t>(shapes_.heads)) {
  for (int head = 0; head < shapes_.heads; ++head) {
    slopes_.push_back(altered.scaling.alibi * slope_of(altered.scaling.slopes, head, shapes_.heads));
  }
  if (problem_.wo && !altered.output.no_wo) {
    wo_ = (*problem_.wo)->cast<double>();
    if (altered.output.transposed_wo) wo_->transposeInPlace();
    round_all(*wo_, altered.format);
  }
}

double AlteredPass::operations_a_row(const Shapes& s) {
  constexpr double kScaling = 30;  // of one cell, most of it the exponential
  const double cells = static_cast<double>(s.heads) * static_cast<double>(s.nk);
  return cells * (2.0 * static_cast<double>(s.d_k + s.d_v) + kScaling) +
         2.0 * static_cast<double>(s.heads * s.d_v) * static_cast<double>(s.d_out);
}

bool AlteredPass::needs_all_rows(const Altered& altered) {
  return altered.softmax.over == SoftmaxOver::kQueries || altered.softmax.transposed;
}

std::size_t AlteredPass::kv_of(std::size_t head) const {
  const auto kv_heads = static_cast<std::size_t>(shapes_.kv_heads);
  return altered_.tiled ? head % kv_heads : head / (static_cast<std::size_t>(shapes_.heads) / kv_heads);
}

bool AlteredPass::sees(Index i, Index j) const {
  const AlteredMask& mask = altered_.mask;
  const Index position = i + mask.shift;
  if (mask.causal && (mask.upside_down ? j < position + mask.diagonal : j > position + mask.diagonal)) return false;
  if (mask.before && position - j >= *mask.before) return false;
  if (mask.after && j - position >= *mask.after) return false;
  const std::vector<std::uint8_t>& valid = mask.key_valid ? *mask.key_valid : problem_.options.key_valid;
  if (valid.empty() || mask.ignores_padding) return true;
  return (valid[static_cast<std::size_t>(j)] != 0) != mask.inverted_padding;
}

void AlteredPass::round_row(Row& row) const {
  if (altered_.format == NumberFormat::kFloat64) return;
  for (double& value : row) value = rounded(value, altered_.format);
}

AlteredPass::HeadRow& AlteredPass::at(std::size_t head, Index row) {
  HeadRow& of = rows_[head];
  if (of.row == row) return of;
  of.row = row;
  of.has_scaled = of.has_attn = of.has_out = false;
  of.scores.noalias() = inputs_->scoring_q(head).row(row) * inputs_->scoring_k(kv_of(head)).transpose();
  round_row(of.scores);
  return of;
}

double AlteredPass::alibi_cell(std::size_t head, Index i, Index j) const {
  const AlteredScaling& by = altered_.scaling;
  if (by.alibi == 0) return 0;
  const Index shift = by.alibi_unshifted ? 0 : altered_.mask.shift;
  const auto distance = static_cast<double>(i + shift - j);
  return -slopes_[head] * (by.alibi_signed ? distance : std::abs(distance));
}

double AlteredPass::scaled_cell(double score, std::size_t head, Index i, Index j) const {
  const AlteredScaling& by = altered_.scaling;
  const double alibi = alibi_cell(head, i, j);
  double bias = 0;
  if (problem_.options.bias) {
    const Matrix& b = problem_.options.bias->get();
    bias = by.bias * static_cast<double>(by.bias_transposed ? b(j, i) : b(i, j));
  }
  const auto cap = [&](double value) { return by.softcap ? *by.softcap * std::tanh(value / *by.softcap) : value; };
  double value = score;
  if (by.softcap_before_scale) value = cap(value);
  if (by.alibi_before_scale) value += alibi;
  if (by.bias_before_scale) value += bias;
  value *= by.scale;
  if (!by.softcap_before_scale && !by.softcap_last) value = cap(value);
  if (!by.alibi_before_scale) value += alibi;
  if (!by.bias_before_scale) value += bias;
  return by.softcap_last ? cap(value) : value;
}

void AlteredPass::make_scaled(std::size_t head, HeadRow& of) {
  if (of.has_scaled) return;
  of.scaled.resize(shapes_.nk);
  of.keep.resize(shapes_.nk);
  for (Index j = 0; j < shapes_.nk; ++j) {
    of.scaled(j) = scaled_cell(of.scores(j), head, of.row, j);
    of.keep(j) = sees(of.row, j) ? 1 : 0;
  }
  round_row(of.scaled);
  of.has_scaled = true;
}

// The scores that softmax gets, and which of them take part in it.
AlteredPass::Row AlteredPass::masked(const HeadRow& of, Row& takes_part) const {
  Row scores = of.scaled;
  takes_part = of.keep;
  const AlteredSoftmax& by = altered_.softmax;
  if (by.mask_use == MaskUse::kExclude) return scores;
  takes_part.setOnes();
  for (Index j = 0; j < scores.size(); ++j) {
    if (of.keep(j) != 0) continue;
    if (by.mask_use == MaskUse::kZeroScore) scores(j) = 0;
    if (by.mask_use == MaskUse::kFill) scores(j) = by.fill;
    if (by.mask_use == MaskUse::kAdd) {
      scores(j) = static_cast<double>(static_cast<float>(scores(j)) + static_cast<float>(by.fill));
    }
  }
  return scores;
}

AlteredPass::Row AlteredPass::softmax(const Row& scores, const Row& takes_part, std::size_t head) const {
  const AlteredSoftmax& by = altered_.softmax;
  Row weights = Row::Zero(scores.size());
  if (!(takes_part.array() != 0).any()) {
    if (by.dead == DeadRows::kNan) weights.setConstant(std::numeric_limits<double>::quiet_NaN());
    if (by.dead == DeadRows::kUniform) weights.setConstant(1.0 / static_cast<double>(scores.size()));
    return weights;
  }
  const std::optional<double> sink = by.sink.empty() ? std::nullopt : std::optional(by.sink[head]);
  double max = sink.value_or(-kInfinity);
  for (Index j = 0; j < scores.size(); ++j) {
    // A NaN stays the maximum: no comparison with it is true.
    if (takes_part(j) != 0 && (scores(j) > max || std::isnan(scores(j)))) max = scores(j);
  }
  if (by.overflows) max = 0;
  double sum = sink ? std::exp(*sink - max) : 0;
  for (Index j = 0; j < scores.size(); ++j) {
    if (takes_part(j) == 0) continue;
    weights(j) = by.overflows ? float_exp(scores(j)) : std::exp(scores(j) - max);
    sum += weights(j);
  }
  if (by.overflows && sum > static_cast<double>(std::numeric_limits<float>::max())) sum = kInfinity;
  for (Index j = 0; j < scores.size(); ++j) {
    if (takes_part(j) != 0 && !by.not_divided) weights(j) /= sum;
  }
  return weights;
}

void AlteredPass::make_weights_over_heads(Index row) {
  over_heads_row_ = row;
  over_heads_.resize(static_cast<Index>(rows_.size()), shapes_.nk);
  for (Index h = 0; h < over_heads_.rows(); ++h) {
    HeadRow& of = at(static_cast<std::size_t>(h), row);
    make_scaled(static_cast<std::size_t>(h), of);
    Row takes_part;
    over_heads_.row(h) = masked(of, takes_part);
    for (Index j = 0; j < shapes_.nk; ++j) {
      if (takes_part(j) == 0) over_heads_(h, j) = -kInfinity;
    }
  }
  Eigen::VectorXd exponentials(over_heads_.rows());
  for (Index j = 0; j < shapes_.nk; ++j) {
    const double max = over_heads_.col(j).maxCoeff();
    double sum = 0;
    for (Index h = 0; h < over_heads_.rows(); ++h) {
      exponentials(h) = std::exp(over_heads_(h, j) - max);
      sum += exponentials(h);
    }
    for (Index h = 0; h < over_heads_.rows(); ++h) {
      double& cell = over_heads_(h, j);
      cell = cell == -kInfinity ? 0 : exponentials(h) / sum;
    }
  }
}

// The weights of all heads, where each row needs every row.
void AlteredPass::make_all_weights() {
  const bool transposed = altered_.softmax.transposed;
  const bool over_queries = altered_.softmax.over == SoftmaxOver::kQueries;
  for (std::size_t head = 0; head < rows_.size(); ++head) {
    MatrixD all(shapes_.nq, shapes_.nk);
    for (Index i = 0; i < shapes_.nq; ++i) {
      HeadRow& of = at(head, i);
      make_scaled(head, of);
      Row takes_part;
      all.row(i) = masked(of, takes_part);
      if (!over_queries) {
        all.row(i) = softmax(Row(all.row(i)), takes_part, head);
        continue;
      }
      for (Index j = 0; j < shapes_.nk; ++j) {
        if (takes_part(j) == 0) all(i, j) = -kInfinity;
      }
    }
    for (Index j = 0; over_queries && j < shapes_.nk; ++j) {
      const double max = all.col(j).maxCoeff();
      if (max == -kInfinity) {
        all.col(j).setZero();
        continue;
      }
      all.col(j) = (all.col(j).array() - max).exp().eval();
      all.col(j) /= all.col(j).sum();
    }
    if (transposed) all.transposeInPlace();
    weights_.push_back(std::move(all));
    rows_[head].row = -1;
  }
}

void AlteredPass::make_attn(std::size_t head, HeadRow& of) {
  if (of.has_attn) return;
  make_scaled(head, of);
  if (needs_all_rows(altered_)) {
    const Index row = of.row;
    if (weights_.empty()) make_all_weights();
    at(head, row);
    make_scaled(head, of);
    of.attn = weights_[head].row(row);
  } else if (altered_.softmax.over == SoftmaxOver::kHeads) {
    if (over_heads_row_ != of.row) make_weights_over_heads(of.row);
    of.attn = over_heads_.row(static_cast<Index>(head));
  } else {
    Row takes_part;
    const Row scores = masked(of, takes_part);
    of.attn = softmax(scores, takes_part, head);
  }
  if (altered_.softmax.mask_use == MaskUse::kAfterwards) of.attn = of.attn.cwiseProduct(of.keep).eval();
  if (const OtherMatrix* zeros = altered_.softmax.zeros_of) {
    for (Index j = 0; j < of.attn.size(); ++j) {
      of.attn(j) = zeros->heads[head](of.row, j) == 0 ? 0 : of.attn(j) * altered_.softmax.factor;
    }
  }
  round_row(of.attn);
  of.has_attn = true;
}

void AlteredPass::make_out(std::size_t head, HeadRow& of) {
  if (of.has_out) return;
  make_attn(head, of);
  const std::size_t kv = kv_of(head);
  const MatrixD& v = inputs_->v[kv];
  if (inputs_->v_finite[kv]) {
    of.out.noalias() = of.attn * v;
  } else {
    of.out = Row::Zero(v.cols());
    for (Index j = 0; j < v.rows(); ++j) {
      if (of.keep(j) != 0 || of.attn(j) != 0) of.out += of.attn(j) * v.row(j);
    }
  }
  round_row(of.out);
  of.has_out = true;
}

void AlteredPass::make_concat(Index row) {
  const Index heads = shapes_.heads, width = shapes_.d_v;
  concat_.resize(heads * width);
  const auto out_of = [&](Index head, Index i) -> const Row& {
    const auto h = static_cast<std::size_t>(head);
    HeadRow& of = at(h, i);
    make_out(h, of);
    return of.out;
  };
  if (altered_.output.concat == HeadCut::kUncut) {
    for (Index c = 0; c < concat_.size(); ++c) {
      const Index flat = row * concat_.size() + c;
      concat_(c) = out_of(flat / (width * shapes_.nq), flat / width % shapes_.nq)(flat % width);
    }
    return;
  }
  const bool interleaved = altered_.output.concat == HeadCut::kInterleaved;
  for (Index head = 0; head < heads; ++head) {
    const Row& of = out_of(head, row);
    for (Index j = 0; j < width; ++j) concat_(interleaved ? head + heads * j : head * width + j) = of(j);
  }
}

void AlteredPass::make_output(Index row) {
  make_concat(row);
  if (wo_) {
    result_.noalias() = concat_ * *wo_;
  } else {
    result_ = concat_;
  }
  if (problem_.bo && !altered_.output.no_bo) result_ += (*problem_.bo)->row(0).cast<double>();
  if (altered_.output.residual) {
    result_ += std::get<ProjectedSource>(problem_.source).x->row(row).cast<double>();
  }
  round_row(result_);
}

const AlteredPass::Row& AlteredPass::held(HeldStep what, HeadRow& of, std::size_t head) {
  if (what == HeldStep::kScores) return of.scores;
  if (what == HeldStep::kAttn) {
    make_attn(head, of);
    return of.attn;
  }
  make_scaled(head, of);
  if (what == HeldStep::kScaled) return of.scaled;
  result_ = of.scaled;
  for (Index j = 0; j < result_.size(); ++j) {
    if (of.keep(j) == 0) result_(j) = -kInfinity;
  }
  return result_;
}

const Eigen::RowVectorXd& AlteredPass::row(MatrixId id, Index row) {
  const auto head = static_cast<std::size_t>(id.head);
  const bool rotated = altered_.inputs.shows_rotated;
  switch (id.kind) {
    case MatrixKind::kQ:
      return result_ = (rotated ? inputs_->scoring_q(head) : inputs_->q[head]).row(row);
    case MatrixKind::kK:
      return result_ = (rotated ? inputs_->scoring_k(head) : inputs_->k[head]).row(row);
    case MatrixKind::kV:
      return result_ = inputs_->v[head].row(row);
    case MatrixKind::kScores:
      return held(altered_.scores_are, at(head, row), head);
    case MatrixKind::kAlibi:
      result_.resize(shapes_.nk);
      for (Index j = 0; j < shapes_.nk; ++j) result_(j) = alibi_cell(head, row, j);
      round_row(result_);
      return result_;
    case MatrixKind::kScaled:
      return held(altered_.scaled_are, at(head, row), head);
    case MatrixKind::kKeep:
      make_scaled(0, at(0, row));
      return rows_[0].keep;
    case MatrixKind::kAttn:
      return held(altered_.attn_is, at(head, row), head);
    case MatrixKind::kHeadsOut:
      make_out(head, at(head, row));
      return rows_[head].out;
    case MatrixKind::kConcat:
      make_concat(row);
      return concat_;
    default:
      make_output(row);
      return result_;
  }
}

const Eigen::RowVectorXd& AlteredPass::mean_row(MatrixKind kind, Index row) {
  mean_ = this->row({kind, 0}, row);
  for (int head = 1; head < shapes_.heads; ++head) mean_ += this->row({kind, head}, row);
  return mean_ /= shapes_.heads;
}

}  // namespace qkv
