// A float32 pass against the float64 one, and random edits of a problem.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/attention/update.h"
#include "tests/core/slow_attention.h"

namespace qkv::test {

inline Trace pass(const Problem& problem, Arithmetic arithmetic, ThreadPool* pool = nullptr) {
  Result<Trace> trace = forward(problem, {.arithmetic = arithmetic, .pool = pool});
  REQUIRE_MESSAGE(trace.ok(), (trace.ok() ? "" : trace.error().message));
  return std::move(trace).value();
}

inline double largest(const Matrix& matrix) {
  return static_cast<double>(matrix.size() ? matrix.cwiseAbs().maxCoeff() : 0);
}

// What rounding of the scaled scores of a head can come to, as a part of a weight: each of the d_k products, and what
// is added, is rounded in float32. A weight moves by as much of itself as its score does.
inline double score_rounding(const Trace& exact, int head) {
  const auto h = static_cast<std::size_t>(head);
  const auto kv = static_cast<std::size_t>(kv_head_of(exact.shapes, head));
  const AttentionOptions& o = exact.problem.options;
  // |Q|·|K| bounds the partial sums, rotated or not: a rope turns pairs, which at most doubles them.
  const MatrixD products = exact.q[h]->cast<double>().cwiseAbs() * exact.k[kv]->cast<double>().cwiseAbs().transpose();
  double size = products.maxCoeff() * std::abs(effective_scale(o, exact.shapes.d_k)) * (o.rope ? 2 : 1);
  if (o.alibi) size += static_cast<double>(exact.shapes.nk + exact.shapes.nq);
  if (o.bias) size += largest(**o.bias);
  for (const float sink : o.sink) size = std::max(size, std::abs(static_cast<double>(sink)));
  return 4 * 0x1p-24 * std::max(1.0, size);
}

struct Excess {
  double attn = 0, out = 0;  // error over bound, the largest
};

// How far a float32 trace is from the float64 one, in units of what one pass may be off by.
inline Excess compare(const Trace& trace, const Trace& exact) {
  Excess worst;
  for (int head = 0; head < exact.shapes.heads; ++head) {
    const auto h = static_cast<std::size_t>(head);
    const double rounding = score_rounding(exact, head);
    const Matrix &attn = *trace.heads[h].attn, &want = *exact.heads[h].attn;
    const double off = (attn.cast<double>() - want.cast<double>()).cwiseAbs().maxCoeff();
    worst.attn = std::max(worst.attn, off / rounding);
    // A row of O is off by its weights' errors and by the rounding of its sum, both at most this much of Σ a·|V|.
    const Matrix& v = *exact.v[static_cast<std::size_t>(kv_head_of(exact.shapes, head))];
    const Eigen::VectorXd size = want.cast<double>() * v.cast<double>().cwiseAbs().rowwise().maxCoeff();
    for (Index row = 0; row < exact.shapes.nq; ++row) {
      const double error = (trace.heads[h].out->row(row).cast<double>() - exact.heads[h].out->row(row).cast<double>())
                               .cwiseAbs()
                               .maxCoeff();
      if (error > 0) worst.out = std::max(worst.out, error / (rounding * size[row] + 1e-30));
      if (exact.heads[h].rows[static_cast<std::size_t>(row)].visible == 0) CHECK(error == 0);
    }
  }
  if (exact.out) {
    const double size =
        largest(exact.concat) * exact.problem.wo->get().cwiseAbs().colwise().sum().maxCoeff() + largest(*exact.out);
    const double error = (trace.out->cast<double>() - exact.out->cast<double>()).cwiseAbs().maxCoeff();
    double rounding = 0;
    for (int head = 0; head < exact.shapes.heads; ++head) rounding = std::max(rounding, score_rounding(exact, head));
    worst.out = std::max(worst.out, error / (rounding * size + 1e-30));
  }
  return worst;
}

// Random edits of one problem.
class Editor {
 public:
  explicit Editor(unsigned seed) : random_(seed) {}

  int below(Index limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }

  // A cell or a row. Now and then numbers a thousand times as large or as small.
  void edit(SharedMatrix& shared) {
    const int row = below(shared.rows());
    // Edits that say which rows they are of, and edits that do not.
    auto cells = below(2) == 0 ? shared.edit_rows(row, 1) : shared.edit().block(row, 0, 1, shared.cols());
    const float size = below(6) == 0 ? 1000.0f : below(6) == 0 ? 0.001f : 1.0f;
    std::normal_distribution<float> normal(0, size);
    if (below(2) == 0) {
      cells(0, below(cells.cols())) = normal(random_);
    } else {
      for (Index c = 0; c < cells.cols(); ++c) cells(0, c) = normal(random_);
    }
  }

  void edit(Problem& problem) {
    if (auto* direct = std::get_if<DirectSource>(&problem.source)) {
      std::vector<SharedMatrix>* which[] = {&direct->q, &direct->k, &direct->v};
      std::vector<SharedMatrix>& heads = *which[below(3)];
      edit(heads[static_cast<std::size_t>(below(static_cast<Index>(heads.size())))]);
    } else {
      auto& p = std::get<ProjectedSource>(problem.source);
      SharedMatrix* which[] = {&p.x, &p.x, &p.wq, &p.wk, &p.wv, &*p.bq, &*p.bk, &*p.bv};
      edit(*which[below(8)]);
    }
  }

  // A cell or a row of the score bias, a key hidden or shown, a logit of the sink: what is edited again and again.
  void edit(AttentionOptions& options, const Shapes& shapes) {
    switch (below(3)) {
      case 0:
        if (!options.bias) options.bias = Matrix(Matrix::Zero(shapes.nq, shapes.nk));
        edit(*options.bias);
        break;
      case 1:
        if (options.key_valid.empty()) options.key_valid.assign(static_cast<std::size_t>(shapes.nk), 1);
        options.key_valid[static_cast<std::size_t>(below(shapes.nk))] ^= 1;
        break;
      default:
        if (options.sink.empty()) options.sink.assign(static_cast<std::size_t>(shapes.heads), 0);
        options.sink[static_cast<std::size_t>(below(shapes.heads))] = static_cast<float>(below(80)) / 10 - 4;
    }
  }

  void toggle(AttentionOptions& options, const Shapes& shapes) {
    switch (below(10)) {
      case 0:
        options.causal = !options.causal;
        break;
      case 1:
        options.alibi = !options.alibi;
        break;
      case 2:
        options.scale = options.scale ? std::nullopt : std::optional(0.3f);
        break;
      case 3:
        options.softcap = options.softcap ? std::nullopt : std::optional(5.0f);
        break;
      case 4:
        if (shapes.d_k % 2 == 0) options.rope = options.rope ? std::nullopt : std::optional(Rope{});
        break;
      case 5:
        options.align = options.align == CausalAlign::kTopLeft ? CausalAlign::kBottomRight : CausalAlign::kTopLeft;
        break;
      case 6:
        options.bias.reset();
        break;
      case 7:
        options.key_valid.clear();
        break;
      case 8:
        options.sink.clear();
        break;
      default:
        options.window = options.window ? std::nullopt : std::optional<Index>(3);
    }
  }

 private:
  std::mt19937 random_;
};

inline Trace edited(Trace trace, const Problem& problem, UpdateReport* report = nullptr, ThreadPool* pool = nullptr) {
  Result<Trace> result = update(std::move(trace), problem, {.arithmetic = Arithmetic::kFloat32, .pool = pool}, report);
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().message));
  return std::move(result).value();
}

// A token less, or one more with random numbers, on every matrix that has a row for it.
inline void resize_tokens(Problem& problem, Index tokens, Editor& editor) {
  auto& source = std::get<DirectSource>(problem.source);
  for (auto* heads : {&source.q, &source.k, &source.v}) {
    for (SharedMatrix& head : *heads) {
      const Matrix before = *head;
      Matrix after = random_matrix(tokens, before.cols(), static_cast<unsigned>(editor.below(1000)));
      const Index kept = std::min(tokens, before.rows());
      after.topRows(kept) = before.topRows(kept);
      head = after;
    }
  }
}

}  // namespace qkv::test
