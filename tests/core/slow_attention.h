// Attention cell by cell from the definitions of its options, and random problems to hold the core to it.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <initializer_list>
#include <utility>

#include "core/attention/source.h"
#include "tests/core/attention_support.h"

namespace qkv::test {

// One head in float64, from the definitions of the options and no function of the core.
struct Slow {
  MatrixD scores, scaled, keep, attn, out;
};

inline MatrixD slow_rope(const MatrixD& rows, const std::optional<Rope>& rope) {
  MatrixD result = rows;
  if (!rope) return result;
  const Index d = rows.cols();
  for (Index position = 0; position < rows.rows(); ++position) {
    for (Index i = 0; i < d / 2; ++i) {
      const Index a = rope->style == RopeStyle::kHalf ? i : 2 * i;
      const Index b = rope->style == RopeStyle::kHalf ? i + d / 2 : 2 * i + 1;
      const double angle = static_cast<double>(position) /
                           std::pow(static_cast<double>(rope->base), 2.0 * static_cast<double>(i) / double(d));
      const std::complex<double> turned =
          std::complex<double>(result(position, a), result(position, b)) * std::polar(1.0, angle);
      result(position, a) = turned.real();
      result(position, b) = turned.imag();
    }
  }
  return result;
}

inline double slow_slope(int head, int heads) {
  int power = 1;
  while (power * 2 <= heads) power *= 2;
  if (head < power) return std::pow(2.0, -8.0 * (head + 1) / power);
  return std::pow(2.0, -8.0 * (2 * (head - power) + 1) / (2 * power));
}

// All but the bias.
inline double slow_scaled(const AttentionOptions& o, double score, int head, const Shapes& s, Index i, Index j) {
  double value = score * (o.scale ? static_cast<double>(*o.scale) : 1 / std::sqrt(static_cast<double>(s.d_k)));
  if (o.softcap) value = std::tanh(value / static_cast<double>(*o.softcap)) * static_cast<double>(*o.softcap);
  const Index shifted = o.align == CausalAlign::kTopLeft ? i : i + s.nk - s.nq;
  if (o.alibi) value -= slow_slope(head, s.heads) * std::abs(static_cast<double>(shifted - j));
  return value;
}

inline bool slow_keep(const AttentionOptions& o, const Shapes& s, Index i, Index j) {
  const Index shifted = o.align == CausalAlign::kTopLeft ? i : i + s.nk - s.nq;
  if (o.causal && j > shifted) return false;
  if (o.window && (shifted - j >= *o.window || j - shifted >= *o.window)) return false;
  return o.key_valid.empty() || o.key_valid[static_cast<std::size_t>(j)] != 0;
}

// What a head reads, in float64: it can be changed by less than float32 shows.
struct SlowInputs {
  MatrixD q, k, v;
  MatrixD bias;  // empty where there is none
  std::optional<double> sink = {};
};

inline Slow slow_head(const SlowInputs& in, const AttentionOptions& o, const Shapes& s, int head) {
  const MatrixD q = slow_rope(in.q, o.rope), k = slow_rope(in.k, o.rope);
  const MatrixD zero = MatrixD::Zero(s.nq, s.nk);
  Slow slow = {zero, zero, zero, zero, MatrixD::Zero(s.nq, s.d_v)};
  for (Index i = 0; i < s.nq; ++i) {
    double max = in.sink.value_or(-HUGE_VAL);
    for (Index j = 0; j < s.nk; ++j) {
      for (Index c = 0; c < s.d_k; ++c) slow.scores(i, j) += q(i, c) * k(j, c);
      slow.scaled(i, j) = slow_scaled(o, slow.scores(i, j), head, s, i, j);
      if (in.bias.size() > 0) slow.scaled(i, j) += in.bias(i, j);
      slow.keep(i, j) = slow_keep(o, s, i, j);
      if (slow.keep(i, j) != 0) max = std::max(max, slow.scaled(i, j));
    }
    double sum = in.sink ? std::exp(*in.sink - max) : 0;
    for (Index j = 0; j < s.nk; ++j) {
      if (slow.keep(i, j) != 0) sum += std::exp(slow.scaled(i, j) - max);
    }
    for (Index j = 0; j < s.nk; ++j) {
      if (slow.keep(i, j) == 0) continue;
      slow.attn(i, j) = std::exp(slow.scaled(i, j) - max) / sum;
      for (Index c = 0; c < s.d_v; ++c) slow.out(i, c) += slow.attn(i, j) * in.v(j, c);
    }
  }
  return slow;
}

// A head of a direct source.
inline Slow slow_head(const Problem& problem, const Shapes& s, int head) {
  const auto& source = std::get<DirectSource>(problem.source);
  const AttentionOptions& o = problem.options;
  const auto kv = static_cast<std::size_t>(head / (s.heads / s.kv_heads));
  SlowInputs in = {source.q[static_cast<std::size_t>(head)]->cast<double>(), source.k[kv]->cast<double>(),
                   source.v[kv]->cast<double>(), o.bias ? MatrixD((*o.bias)->cast<double>()) : MatrixD()};
  if (!o.sink.empty()) in.sink = static_cast<double>(o.sink[static_cast<std::size_t>(head)]);
  return slow_head(in, o, s, head);
}

// Problems of up to `most` tokens, every option on or off at random.
class RandomProblems {
 public:
  explicit RandomProblems(unsigned seed, int most = 13) : random_(seed), most_(most) {}

  Problem next() {
    const int kv_heads = 1 + below(3), heads = kv_heads * (1 + below(4));
    const Index nq = 1 + below(most_), nk = coin() ? nq : 1 + below(most_);
    AttentionOptions o;
    if (coin()) o.rope = Rope{coin() ? 10000.0f : 7.5f, coin() ? RopeStyle::kHalf : RopeStyle::kInterleaved};
    const Index d_k = o.rope ? 2 * (1 + below(5)) : 1 + below(10);
    if (coin()) o.scale = pick({0.0f, 0.05f, 1.0f, 2.5f, -0.7f});
    if (coin()) o.softcap = pick({0.25f, 3.0f, 30.0f});
    o.alibi = coin();
    if (coin()) o.bias = random_matrix(nq, nk, seed());
    o.causal = coin();
    o.align = coin() ? CausalAlign::kTopLeft : CausalAlign::kBottomRight;
    if (coin()) o.window = 1 + below(most_ / 2);
    if (coin()) o.key_valid.resize(static_cast<std::size_t>(nk));
    for (auto& valid : o.key_valid) valid = below(4) > 0;
    if (coin()) o.sink.resize(static_cast<std::size_t>(heads));
    for (float& sink : o.sink) sink = pick({-30.0f, -1.0f, 0.0f, 2.5f, 20.0f});
    Problem problem = random_problem(heads, kv_heads, nq, nk, d_k, 1 + below(5), seed());
    problem.options = std::move(o);
    return problem;
  }

 private:
  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  unsigned seed() { return static_cast<unsigned>(random_()); }
  bool coin() { return below(2) == 0; }
  float pick(std::initializer_list<float> values) { return values.begin()[below(static_cast<int>(values.size()))]; }

  std::mt19937 random_;
  int most_;
};

}  // namespace qkv::test
