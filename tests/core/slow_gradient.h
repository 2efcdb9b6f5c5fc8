// Gradients by central differences of the slow float64 forward pass, to hold core/attention/gradient.h to.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "core/attention/gradient.h"
#include "tests/core/slow_attention.h"

namespace qkv::test {

// Everything that L depends on, in float64.
struct DoubleInputs {
  MatrixTable<MatrixD> of;  // q k v, or x and the weights and biases; wo, bo
  MatrixD bias;             // empty where there is none
  MatrixD sink;             // [1, H], or empty
};

inline DoubleInputs double_inputs(const Problem& problem) {
  DoubleInputs in;
  const auto add = [&](MatrixKind kind, const SharedMatrix& m) { in.of.add(kind, m->cast<double>()); };
  if (const auto* direct = std::get_if<DirectSource>(&problem.source)) {
    for (const SharedMatrix& q : direct->q) add(MatrixKind::kQ, q);
    for (const SharedMatrix& k : direct->k) add(MatrixKind::kK, k);
    for (const SharedMatrix& v : direct->v) add(MatrixKind::kV, v);
  } else {
    const auto& projected = std::get<ProjectedSource>(problem.source);
    add(MatrixKind::kX, projected.x);
    add(MatrixKind::kWq, projected.wq);
    add(MatrixKind::kWk, projected.wk);
    add(MatrixKind::kWv, projected.wv);
    if (projected.bq) add(MatrixKind::kBq, *projected.bq);
    if (projected.bk) add(MatrixKind::kBk, *projected.bk);
    if (projected.bv) add(MatrixKind::kBv, *projected.bv);
  }
  if (problem.wo) add(MatrixKind::kWo, *problem.wo);
  if (problem.bo) add(MatrixKind::kBo, *problem.bo);
  if (problem.options.bias) in.bias = (*problem.options.bias)->cast<double>();
  const auto& sink = problem.options.sink;
  in.sink.resize(sink.empty() ? 0 : 1, static_cast<Index>(sink.size()));
  for (std::size_t h = 0; h < sink.size(); ++h) in.sink(0, static_cast<Index>(h)) = static_cast<double>(sink[h]);
  return in;
}

// A head's part of x·w + b, or the matrix as given.
inline MatrixD slow_input(const DoubleInputs& in, MatrixKind given, MatrixKind weights, MatrixKind bias, int head,
                          Index width) {
  if (const MatrixD* matrix = in.of.find({given, head})) return *matrix;
  MatrixD result = in.of.at({MatrixKind::kX}) * in.of.at({weights}).middleCols(head * width, width);
  if (const MatrixD* b = in.of.find({bias})) result.rowwise() += b->row(0).middleCols(head * width, width);
  return result;
}

struct SlowRun {
  std::vector<Slow> heads;
  MatrixD concat, out;  // out: empty without a W^O
};

inline SlowRun slow_run(const DoubleInputs& in, const AttentionOptions& options, const Shapes& s) {
  SlowRun run;
  run.concat.resize(s.nq, s.heads * s.d_v);
  for (int head = 0; head < s.heads; ++head) {
    const int kv = head / (s.heads / s.kv_heads);
    SlowInputs of_head = {slow_input(in, MatrixKind::kQ, MatrixKind::kWq, MatrixKind::kBq, head, s.d_k),
                          slow_input(in, MatrixKind::kK, MatrixKind::kWk, MatrixKind::kBk, kv, s.d_k),
                          slow_input(in, MatrixKind::kV, MatrixKind::kWv, MatrixKind::kBv, kv, s.d_v), in.bias};
    if (in.sink.size() > 0) of_head.sink = in.sink(0, head);
    run.heads.push_back(slow_head(of_head, options, s, head));
    run.concat.middleCols(head * s.d_v, s.d_v) = run.heads.back().out;
  }
  if (const MatrixD* wo = in.of.find({MatrixKind::kWo})) {
    run.out = run.concat * *wo;
    if (const MatrixD* bo = in.of.find({MatrixKind::kBo})) run.out.rowwise() += bo->row(0);
  }
  return run;
}

inline double slow_target(const SlowRun& run, const GradientTarget& target) {
  if (!target.cell) return run.out.size() > 0 ? run.out.squaredNorm() : run.concat.squaredNorm();
  const auto& [id, row, col] = *target.cell;
  const Slow& head = run.heads[static_cast<std::size_t>(is_per_head(id.kind) ? id.head : 0)];
  switch (id.kind) {
    case MatrixKind::kOut:
      return run.out(row, col);
    case MatrixKind::kConcat:
      return run.concat(row, col);
    case MatrixKind::kHeadsOut:
      return head.out(row, col);
    case MatrixKind::kAttn:
      return head.attn(row, col);
    case MatrixKind::kScaled:
      return head.scaled(row, col);
    default:
      return head.scores(row, col);
  }
}

// What the differences of one problem and target are off by.
//
// With κ the most that a scaled score moves when an input moves by 1 (all of a matrix's cells at once), the step is
// h = u/κ, so that no score moves by more than u = 2^-10. The five-point difference
// (8·(f(h) − f(−h)) − (f(2h) − f(−2h))) / 12h leaves out h⁴/30·f⁽⁵⁾, and f⁽⁵⁾ ≤ 120·κ⁵·M for an L of terms that add up
// to M in magnitude (the fifth derivative of a product of softmaxes is a few dozen at most): 4·u⁵·M/h. Rounding in f,
// n terms long with scores of size S, is eps·(n + S)·M, and the difference multiplies it by 1.5/h.
struct DifferenceScale {
  double magnitude = 1;  // M
  double noise = 0;      // eps·(n + S)
  double tolerance(double step) const {
    const double u = 0x1p-10;
    return magnitude / step * (4 * std::pow(u, 5) + 1.5 * noise);
  }
};

class Differences {
 public:
  Differences(const Problem& problem, const Shapes& shapes, const GradientTarget& target)
      : in_(double_inputs(problem)), options_(problem.options), s_(shapes), target_(target) {
    double score = 1;
    for (const Slow& head : slow_run(in_, options_, s_).heads) {
      score = std::max({score, largest(head.scores), largest(head.scaled)});
    }
    scale_.magnitude = magnitude(score);
    const auto terms = static_cast<double>(s_.nk + s_.d_k + s_.heads * s_.d_v + s_.d_model);
    scale_.noise = std::numeric_limits<double>::epsilon() * (terms + score);
  }

  // The derivative along `direction`, entries −1, 0 or 1, of the matrix that `access` finds.
  double along(const std::function<MatrixD&(DoubleInputs&)>& access, const MatrixD& direction, double step) {
    DoubleInputs moved = in_;
    const auto at = [&](double factor) {
      access(moved) = access(in_) + factor * step * direction;
      return slow_target(slow_run(moved, options_, s_), target_);
    };
    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step);
  }

  // κ of a kind of input.
  double reach(MatrixKind kind) const {
    const double scale =
        std::abs(options_.scale ? static_cast<double>(*options_.scale) : 1 / std::sqrt(static_cast<double>(s_.d_k)));
    const double turned = options_.rope ? std::sqrt(2.0) : 1;
    const double cap = options_.softcap ? std::min(1.0, static_cast<double>(*options_.softcap)) : 1;
    const double one = scale * turned * static_cast<double>(s_.d_k) / cap;
    const double q = largest_input(MatrixKind::kQ), k = largest_input(MatrixKind::kK), x = largest_of(MatrixKind::kX);
    const double model = static_cast<double>(s_.d_model);
    switch (kind) {
      case MatrixKind::kQ:
      case MatrixKind::kBq:
        return one * k;
      case MatrixKind::kK:
      case MatrixKind::kBk:
        return one * q;
      case MatrixKind::kWq:
        return one * k * model * x;
      case MatrixKind::kWk:
        return one * q * model * x;
      case MatrixKind::kX:
        return one * model * (largest_of(MatrixKind::kWq) * k + largest_of(MatrixKind::kWk) * q);
      default:
        return 1;
    }
  }
  double step(double reach) const { return 0x1p-10 / std::max(reach, 1.0); }

  double tolerance(double step) const { return scale_.tolerance(step); }
  const DoubleInputs& inputs() const { return in_; }

 private:
  static double largest(const MatrixD& m) { return m.size() == 0 ? 0 : m.cwiseAbs().maxCoeff(); }

  // The largest number of Q, K or V, given or projected.
  double largest_input(MatrixKind kind) const {
    const bool is_q = kind == MatrixKind::kQ, is_v = kind == MatrixKind::kV;
    const MatrixKind weights = is_q ? MatrixKind::kWq : is_v ? MatrixKind::kWv : MatrixKind::kWk;
    const MatrixKind bias = is_q ? MatrixKind::kBq : is_v ? MatrixKind::kBv : MatrixKind::kBk;
    double result = 0;
    for (int h = 0; h < (is_q ? s_.heads : s_.kv_heads); ++h) {
      result = std::max(result, largest(slow_input(in_, kind, weights, bias, h, is_v ? s_.d_v : s_.d_k)));
    }
    return result;
  }
  double largest_of(MatrixKind kind) const { return in_.of.find({kind}) ? largest(in_.of.at({kind})) : 0; }

  // Weights add up to 1 at most, so a cell of heads_out is at most the largest of V.
  double magnitude(double score) const {
    const MatrixKind kind = target_.cell ? target_.cell->id.kind : MatrixKind::kOut;
    if (kind == MatrixKind::kScores || kind == MatrixKind::kScaled) return score;
    if (kind == MatrixKind::kAttn) return 1;
    const double value = largest_input(MatrixKind::kV);
    const MatrixD* wo = in_.of.find({MatrixKind::kWo});
    const Index width = wo ? wo->cols() : s_.heads * s_.d_v;
    MatrixD bound = MatrixD::Constant(1, width, value);
    if (wo) bound = value * wo->cwiseAbs().colwise().sum();
    if (const MatrixD* bo = in_.of.find({MatrixKind::kBo})) bound += bo->cwiseAbs();
    if (!target_.cell) return static_cast<double>(s_.nq) * bound.squaredNorm();
    return kind == MatrixKind::kOut ? bound(0, target_.cell->col) : value;
  }

  DoubleInputs in_;
  AttentionOptions options_;
  Shapes s_;
  GradientTarget target_;
  DifferenceScale scale_;
};

}  // namespace qkv::test
