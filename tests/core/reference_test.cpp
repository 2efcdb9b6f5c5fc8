// The forward pass against tensors that other implementations computed: NumPy in float64, and TensorFlow.js.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/core/attention_support.h"
#include "tests/core/reference_cases.h"

using namespace qkv;
using namespace qkv::test;

namespace {

double largest(const Values& values) {
  double result = 0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

// Distance from |value|, rounded to float32, to the next larger float32.
double ulp_at(double value) {
  const float magnitude = std::abs(static_cast<float>(value));
  return static_cast<double>(std::nextafter(magnitude, std::numeric_limits<float>::infinity())) -
         static_cast<double>(magnitude);
}

// The largest distance of the heads of `got`, one after the other, from `want`, in units of `ulp(want cell)`.
template <class Ulp>
double worst(const std::vector<const Matrix*>& got, const Values& want, Ulp ulp) {
  double result = 0;
  std::size_t next = 0;
  for (const Matrix* head : got) {
    for (Index i = 0; i < head->size(); ++i, ++next) {
      REQUIRE(next < want.size());
      const double error = std::abs(static_cast<double>(head->data()[i]) - want[next]);
      result = std::isnan(error) ? HUGE_VAL : std::max(result, error / ulp(want[next]));
    }
  }
  REQUIRE(next == want.size());
  return result;
}

// What a float64 sum of n terms in another order than the reference's is off by: about n·2^-53·largest, for the
// longest row, n = 4099. It counts where cancellation leaves a cell so small that its ulp is less than that.
double cancellation(const Values& want) { return 4099 * 0x1p-53 * largest(want); }

// Float32 ulps of the cell itself, or of `floor` where that is more. The pass rounds a float64 value once, which is
// off by half an ulp. Weights need no floor: a softmax adds only what is positive. `more` is allowed beside it.
double worst_ulps(const std::vector<const Matrix*>& got, const Values& want, double floor = 0, double more = 0) {
  return worst(got, want, [=](double cell) { return std::max(ulp_at(cell), floor) + more; });
}

// Float32 ulps of the largest cell of the tensor: for sums whose inputs were rounded to float32 on the way.
double worst_ulps_of_largest(const std::vector<const Matrix*>& got, const Values& want) {
  const double ulp = ulp_at(largest(want));
  return worst(got, want, [&](double) { return ulp; });
}

double worst_difference(const std::vector<const Matrix*>& got, const Values& want) {
  return worst(got, want, [](double) { return 1.0; });
}

std::vector<const Matrix*> of_heads(const Trace& trace, MatrixKind kind) {
  std::vector<const Matrix*> result;
  for (int h = 0; const Matrix* matrix = trace.find({kind, h}); ++h) result.push_back(matrix);
  return result;
}

struct Weights {
  SharedMatrix wq, wk, wv, bq, bk, bv, wo, bo;
};

// The projections of a layer whose Q, K and V weights lie side by side.
Weights split_weights(const TensorFile& file) {
  const SharedMatrix w = matrix(file, "wqkv"), b = matrix(file, "bqkv");
  const Index width = w.cols() / 3;
  const auto third = [width](const SharedMatrix& all, Index n) { return Matrix(all->middleCols(n * width, width)); };
  return {third(w, 0), third(w, 1), third(w, 2),        third(b, 0),
          third(b, 1), third(b, 2), matrix(file, "wo"), matrix(file, "bo")};
}

}  // namespace

TEST_CASE("scaled dot-product attention agrees with float64 NumPy to one float32 ulp of each cell") {
  for (const Case& c : kCases) {
    CAPTURE(c.name);
    const TensorFile file = open("sdpa/" + c.name + ".npz");
    const Trace trace = run(problem_of(c));
    const Values scores = expected(file, "scores");
    CHECK(worst_ulps(of_heads(trace, MatrixKind::kScores), scores, cancellation(scores)) <= 1);
    const Values scaled = expected(file, "scaled"), attn = expected(file, "attn"), out = expected(file, "out");
    CHECK(worst_ulps(of_heads(trace, MatrixKind::kScaled), scaled, cancellation(scaled), c.rounding) <= 1);
    // A score that is off by e, and a denominator of such scores, scale a weight by e^(±2e) at most.
    const auto weight_ulp = [&](double cell) { return ulp_at(cell) + 2 * c.rounding * cell; };
    CHECK(worst(of_heads(trace, MatrixKind::kAttn), attn, weight_ulp) <= 1);
    const double of_out = 2 * c.rounding * largest(expected(file, "v"));
    CHECK(worst_ulps(of_heads(trace, MatrixKind::kHeadsOut), out, cancellation(out), of_out) <= 1);

    const Values keep = expected(file, "keep");
    REQUIRE(static_cast<Index>(keep.size()) == trace.keep->size());
    bool same = true;
    for (std::size_t i = 0; i < keep.size(); ++i) {
      same = same && trace.keep->data()[i] == static_cast<float>(keep[i]);
      for (const HeadTrace& head : trace.heads) same = same && (keep[i] != 0 || head.attn->data()[i] == 0.0f);
    }
    CHECK(same);
  }
}

TEST_CASE("a layer with projections, biases and causal heads agrees with float64 NumPy") {
  const TensorFile file = open("multi_head_layer.npz");
  const ProjectedSource source = {.x = matrix(file, "x"),
                                  .wq = matrix(file, "wq"),
                                  .wk = matrix(file, "wk"),
                                  .wv = matrix(file, "wv"),
                                  .bq = matrix(file, "bq"),
                                  .bk = matrix(file, "bk"),
                                  .bv = matrix(file, "bv"),
                                  .heads = 4,
                                  .kv_heads = 4};
  const Trace trace = run({source, matrix(file, "wo"), matrix(file, "bo"), {.causal = true}});
  const Values q = expected(file, "q");
  CHECK(worst_ulps(of_heads(trace, MatrixKind::kQ), q, cancellation(q)) <= 1);
  const Values k = expected(file, "k");
  CHECK(worst_ulps(of_heads(trace, MatrixKind::kK), k, cancellation(k)) <= 1);
  const Values v = expected(file, "v");
  CHECK(worst_ulps(of_heads(trace, MatrixKind::kV), v, cancellation(v)) <= 1);
  // The reference never rounds Q, K and V; the pass computes on from the float32 values that it shows. Each is off
  // by half an ulp; softmax and the weighted sums pass on less than that, beside half an ulp of their own.
  CHECK(worst_ulps_of_largest(of_heads(trace, MatrixKind::kAttn), expected(file, "attn")) <= 1);
  CHECK(worst_ulps_of_largest(of_heads(trace, MatrixKind::kHeadsOut), expected(file, "heads_out")) <= 1);
  CHECK(worst_ulps_of_largest({&*trace.concat}, expected(file, "concat")) <= 1);
  REQUIRE(trace.out.has_value());
  CHECK(worst_ulps_of_largest({&*trace.out}, expected(file, "out")) <= 1);
}

// The model ran in float32 throughout: over sums of up to 512 products its own rounding is what differs. The float64
// reference differs from it by 3e-6 in the weights and 2e-5 in the output; the limits are about twice that.
TEST_CASE("a trained encoder's layers agree with what the model itself computed") {
  for (const std::string layer : {"0", "1"}) {
    const TensorFile weights_file = open("use_lite/weights_layer" + layer + ".npz");
    const Weights w = split_weights(weights_file);
    for (const std::string sentence : {"0", "1", "2"}) {
      CAPTURE(layer);
      CAPTURE(sentence);
      const TensorFile file = open("use_lite/sentence_" + sentence + ".npz");
      const std::string l = "l" + layer + ".";
      const ProjectedSource source = {.x = matrix(file, l + "x"),
                                      .wq = w.wq,
                                      .wk = w.wk,
                                      .wv = w.wv,
                                      .bq = w.bq,
                                      .bk = w.bk,
                                      .bv = w.bv,
                                      .heads = 4,
                                      .kv_heads = 4};
      const Trace trace = run({source, w.wo, w.bo, {}});
      const Values q = expected(file, l + "q"), q_scaled = expected(file, l + "q_scaled");
      const double scale = effective_scale({}, trace.shapes.d_k);
      for (std::size_t i = 0; i < q.size(); ++i) REQUIRE(std::abs(q_scaled[i] - q[i] * scale) <= ulp_at(q_scaled[i]));

      CHECK(worst_difference(of_heads(trace, MatrixKind::kQ), q) <= 5e-5);
      CHECK(worst_difference(of_heads(trace, MatrixKind::kK), expected(file, l + "k")) <= 5e-5);
      CHECK(worst_difference(of_heads(trace, MatrixKind::kV), expected(file, l + "v")) <= 5e-5);
      CHECK(worst_difference(of_heads(trace, MatrixKind::kScaled), expected(file, l + "scores")) <= 5e-5);
      CHECK(worst_difference(of_heads(trace, MatrixKind::kAttn), expected(file, l + "attn")) <= 5e-6);
      CHECK(worst_difference(of_heads(trace, MatrixKind::kHeadsOut), expected(file, l + "o")) <= 5e-5);
      CHECK(worst_difference({&*trace.concat}, expected(file, l + "concat")) <= 5e-5);
      REQUIRE(trace.out.has_value());
      CHECK(worst_difference({&*trace.out}, expected(file, l + "out")) <= 5e-5);
    }
  }
}
