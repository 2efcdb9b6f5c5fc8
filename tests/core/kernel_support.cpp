#include "tests/core/kernel_support.h"

namespace qkv::test {
namespace {

double real(float x) { return static_cast<double>(x); }

// A score is a sum of d_k products, each rounded, added in order: off by at most d_k·2^-24 of their magnitudes, and
// twice that on targets that round products first.
void slow_scores(const Head& head, Index row, SlowRow& slow) {
  const Index d = head.q.cols();
  for (Index j = 0; j < head.nk(); ++j) {
    double sum = 0, magnitude = 0;
    for (Index c = 0; c < d; ++c) {
      const double product = real(head.q(row, c)) * real(head.k(j, c));
      sum += product;
      magnitude += std::abs(product);
    }
    slow.scores.push_back(sum);
    slow.score_bounds.push_back(static_cast<double>(2 * d + 1) * kHalfUlp * magnitude);
  }
}

// Scale rounds once, softcap 5 times (2.5 ulp), ALiBi and bias twice each, at the magnitude that the score has there.
void slow_scaling(const Head& head, Index row, SlowRow& slow) {
  const KernelScaling& scaling = head.scaling;
  for (Index j = 0; j < head.nk(); ++j) {
    const auto at = static_cast<std::size_t>(j);
    double s = slow.scores[at] * real(scaling.scale), magnitude = std::abs(s);
    double bound = slow.score_bounds[at] * std::abs(real(scaling.scale));
    if (scaling.softcap > 0) {
      s = real(scaling.softcap) * std::tanh(s / real(scaling.softcap));
      bound += 5 * kHalfUlp * std::abs(s);
    }
    if (scaling.slope != 0) {
      const double term = real(scaling.slope) * std::abs(static_cast<double>(row + scaling.shift - j));
      s -= term;
      magnitude += term;
      bound += 2 * kHalfUlp * magnitude;
    }
    if (head.bias.rows() > 0) {
      s += real(head.bias(row, j));
      magnitude += std::abs(real(head.bias(row, j)));
      bound += 2 * kHalfUlp * magnitude;
    }
    slow.scaled.push_back(s);
    slow.scaled_bounds.push_back(std::isfinite(s) ? bound + kHalfUlp * magnitude : 0);
  }
}

void slow_weights(const Head& head, Index row, SlowRow& slow) {
  double worst = 0;
  if (head.sink) slow.max = real(*head.sink);
  for (Index j = 0; j < head.nk(); ++j) {
    if (!head.sees(row, j)) continue;
    ++slow.visible;
    slow.max = std::max(slow.max, slow.scaled[static_cast<std::size_t>(j)]);
    worst = std::max(worst, slow.scaled_bounds[static_cast<std::size_t>(j)]);
  }
  slow.weights.resize(slow.scaled.size());
  slow.weight_bounds.resize(slow.scaled.size());
  if (slow.visible == 0) return;
  for (std::size_t j = 0; j < slow.scaled.size(); ++j) {
    if (head.sees(row, static_cast<Index>(j))) slow.weights[j] = std::exp(slow.scaled[j] - slow.max);
    slow.sum += slow.weights[j];
  }
  if (head.sink) slow.sum += std::exp(real(*head.sink) - slow.max);
  // A score that is off by e scales its weight by up to exp(e), and the sum likewise. Within a key block a lane adds
  // up to 256 weights, each off by an ulp; then come the quotient and the product.
  for (std::size_t j = 0; j < slow.weights.size(); ++j) {
    slow.weights[j] /= slow.sum;
    if (slow.weights[j] == 0) continue;
    slow.weight_bounds[j] = slow.weights[j] * (std::expm1(2 * worst) + (256 + 8) * kHalfUlp) + 0x1p-119;
  }
}

void slow_out(const Head& head, Index row, SlowRow& slow) {
  for (Index c = 0; c < head.v.cols(); ++c) {
    double sum = 0, bound = 0;
    for (Index j = 0; j < head.nk(); ++j) {
      if (!head.sees(row, j)) continue;
      const auto at = static_cast<std::size_t>(j);
      const double product = slow.weights[at] * real(head.v(j, c));
      sum += product;
      // Up to 256 products, rounded, in a row; then one addition for each key block.
      bound += std::abs(real(head.v(j, c))) * slow.weight_bounds[at] +
               std::abs(product) * (512 + 2 + static_cast<double>(head.nk()) / 256) * kHalfUlp;
    }
    slow.out.push_back(sum);
    slow.out_bounds.push_back(bound + 0x1p-126);
  }
}

bool is_near(float got, double want, double bound) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return real(got) == want;
  return std::abs(real(got) - want) <= bound;
}

}  // namespace

SlowRow slow_row(const Head& head, Index row) {
  SlowRow slow;
  slow_scores(head, row, slow);
  slow_scaling(head, row, slow);
  slow_weights(head, row, slow);
  slow_out(head, row, slow);
  return slow;
}

void check_head(const Head& head, const Results& results) {
  CHECK(results.scores.is_intact());
  CHECK(results.weights.is_intact());
  CHECK(results.out.is_intact());
  for (Index i = 0; i < head.nq(); ++i) {
    const SlowRow slow = slow_row(head, i);
    const RowSoftmax& row = results.rows[static_cast<std::size_t>(i)];
    bool scores = true, weights = true, out = true;
    for (Index j = 0; j < head.nk(); ++j) {
      const auto at = static_cast<std::size_t>(j);
      if (head.sees(i, j)) {
        scores = scores && is_near(results.scores(i, j), slow.scores[at], slow.score_bounds[at]);
        weights = weights && is_near(results.weights(i, j), slow.weights[at], slow.weight_bounds[at]);
      } else {
        weights = weights && same_bits(results.weights(i, j), 0.0f);
      }
    }
    for (Index c = 0; c < head.v.cols(); ++c) {
      const auto at = static_cast<std::size_t>(c);
      out = out && is_near(results.out(i, c), slow.out[at], slow.out_bounds[at]);
    }
    CHECK_MESSAGE(scores, "scores of row ", i);
    CHECK_MESSAGE(weights, "weights of row ", i);
    CHECK_MESSAGE(out, "output of row ", i);
    CHECK_MESSAGE(row.visible == slow.visible, "visible keys of row ", i);
    if (slow.visible == 0) {
      CHECK(same_bits(row, RowSoftmax{}));
    } else {
      CHECK_MESSAGE(is_near(row.max, slow.max, 1e-4 * (1 + std::abs(slow.max))), "maximum of row ", i);
    }
  }
}

}  // namespace qkv::test
