// The float32 kernels against tensors that NumPy computed in float64.
#include <doctest/doctest.h>

#include "core/attention/options.h"
#include "core/attention/position.h"
#include "core/tensor_io/tensor_file.h"
#include "tests/core/kernel_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

struct Case {
  std::string name;
  AttentionOptions options = {};
};

std::vector<Case> cases() {
  Matrix bias(6, 6);
  bias << 1.564f, 0.716f, -0.656f, 0.017f, -0.927f, 2.31f, 1.025f, 4.015f, -0.73f, 2.925f, -1.149f, -0.333f, -2.087f,
      1.062f, -0.109f, 1.259f, 3.005f, -0.101f, 0.775f, 1.818f, -0.107f, -1.087f, 0.73f, 1.023f, 1.579f, 1.684f,
      -1.329f, 0.906f, 2.484f, -0.918f, 0.742f, -1.229f, 0.349f, 3.498f, 0.361f, -1.924f;
  return {
      {"plain"},
      {"one_token"},
      {"one_dim"},
      {"odd_sizes"},
      {"cross"},
      {"tile_edges"},
      {"causal", {.causal = true}},
      {"causal_cross_bottom_right", {.causal = true}},
      {"causal_cross_top_left", {.causal = true, .align = CausalAlign::kTopLeft}},
      {"window_causal", {.causal = true, .window = 4}},
      {"window_both_sides", {.window = 3}},
      {"padding", {.key_valid = {1, 1, 1, 1, 1, 1, 0, 0, 0}}},
      {"padding_all", {.key_valid = {0, 0, 0, 0}}},
      {"bias", {.bias = bias}},
      {"scale_one", {.scale = 1.0f}},
      {"softcap", {.softcap = 20.0f}},
      {"alibi_8", {.causal = true, .alibi = true}},
      {"alibi_6", {.causal = true, .alibi = true}},
      {"rope_half", {.causal = true, .rope = Rope{10000, RopeStyle::kHalf}}},
      {"rope_interleaved", {.rope = Rope{10000, RopeStyle::kInterleaved}}},
      {"gqa_8_2", {.causal = true}},
      {"mqa_4_1"},
      {"sink", {.causal = true, .sink = {0, 1, -2, 5}}},
      {"huge_logits"},
      {"huge_equal"},
      {"long_row"},
  };
}

// [heads, rows, cols]
struct Heads {
  Tensor tensor;
  Index heads() const { return static_cast<Index>(tensor.shape[0]); }
  Index rows() const { return static_cast<Index>(tensor.shape[1]); }
  Index cols() const { return static_cast<Index>(tensor.shape[2]); }
  Matrix head(Index h) const {
    return Eigen::Map<const Matrix>(tensor.values.data() + h * rows() * cols(), rows(), cols());
  }
};

Heads read(const TensorFile& file, const std::string& name) {
  Result<Tensor> tensor = file.read(name);
  REQUIRE_MESSAGE(tensor.ok(), name);
  REQUIRE(tensor.value().shape.size() == 3);
  return {std::move(tensor).value()};
}

FloatView view(const Matrix& m) { return {m.data(), m.rows(), m.cols(), m.cols()}; }
FloatBlock block(Matrix& m) { return {m.data(), m.rows(), m.cols(), m.cols()}; }

using Values = std::vector<double>;

Values values_of(const TensorFile& file, const std::string& name) {
  Result<Tensor64> tensor = file.read_float64(name);
  REQUIRE_MESSAGE(tensor.ok(), name);
  return std::move(tensor).value().values;
}

double ulp_at(double value) {
  const float magnitude = static_cast<float>(value);
  return static_cast<double>(std::nextafter(magnitude, kKernelInf)) - static_cast<double>(magnitude);
}

// The largest distance in ulps of the largest number of `want`.
struct Distance {
  double largest = 0, error = 0;
  // Head h of all.
  void add(const Matrix& got, const Values& want, Index h) {
    for (Index i = 0; i < got.size(); ++i) {
      const double exact = want[static_cast<std::size_t>(h * got.size() + i)];
      largest = std::max(largest, std::abs(exact));
      error = std::max(error, std::abs(static_cast<double>(got.data()[i]) - exact));
    }
  }
  double ulps() const { return error == 0 ? 0 : error / ulp_at(largest); }
};

// Weights in float64 from float32 scaled scores.
Values softmax_of(const Matrix& scores, const KeepMatrix& keep, const std::optional<float>& sink) {
  Values weights;
  for (Index i = 0; i < scores.rows(); ++i) {
    double max = sink ? static_cast<double>(*sink) : -HUGE_VAL, sum = 0;
    for (Index j = 0; j < scores.cols(); ++j) {
      if (keep(i, j) != 0) max = std::max(max, static_cast<double>(scores(i, j)));
    }
    if (sink) sum = std::exp(static_cast<double>(*sink) - max);
    for (Index j = 0; j < scores.cols(); ++j) {
      weights.push_back(keep(i, j) != 0 ? std::exp(static_cast<double>(scores(i, j)) - max) : 0.0);
      sum += weights.back();
    }
    for (auto at = weights.end() - scores.cols(); sum > 0 && at != weights.end(); ++at) *at /= sum;
  }
  return weights;
}

void check_case(const Case& c) {
  const Result<TensorFile> file = TensorFile::open(std::string(QKV_TEST_DATA) + "/sdpa/" + c.name + ".npz");
  REQUIRE(file.ok());
  const Heads q = read(file.value(), "q"), k = read(file.value(), "k"), v = read(file.value(), "v");
  const Values scaled = values_of(file.value(), "scaled"), attn = values_of(file.value(), "attn");
  const Values out = values_of(file.value(), "out");
  const AttentionOptions& o = c.options;
  const Index nq = q.rows(), nk = k.rows(), shift = query_shift(o, nq, nk);
  Distance of_scaled, of_softmax, of_attn, of_out;
  for (Index h = 0; h < q.heads(); ++h) {
    const Index group = h / (q.heads() / k.heads());
    const Matrix queries = positioned(q.head(h), o.rope).cast<float>(), values = v.head(group);
    const Matrix keys = positioned(k.head(group), o.rope).cast<float>();
    const PackedKeyValues kv(view(keys), view(values));
    HeadInput input = {view(queries), &kv, {}, {}, {}};
    input.scaling = {
        .scale = static_cast<float>(effective_scale(o, q.cols())),
        .softcap = o.softcap.value_or(0.0f),
        .slope = o.alibi ? static_cast<float>(alibi_slope(static_cast<int>(h), static_cast<int>(q.heads()))) : 0,
        .bias = o.bias ? view(**o.bias) : FloatView{},
        .shift = shift};
    input.mask = {o.causal, o.window.value_or(0), shift, o.key_valid.empty() ? nullptr : o.key_valid.data()};
    if (!o.sink.empty()) input.sink = o.sink[static_cast<std::size_t>(h)];
    Matrix weights(nq, nk), outputs(nq, v.cols());
    std::vector<RowSoftmax> rows(static_cast<std::size_t>(nq));
    attend(input, {{}, block(weights), block(outputs), rows});
    Matrix scores(nq, nk);
    score_cells(input, {0, 0, nq, nk}, block(scores));
    scale_cells(input, {0, 0, nq, nk}, block(scores));
    of_scaled.add(scores, scaled, h);
    of_softmax.add(weights, softmax_of(scores, keep_matrix(o, nq, nk), input.sink), 0);
    of_attn.add(weights, attn, h);
    of_out.add(outputs, out, h);
  }
  CHECK(of_scaled.ulps() <= 4);
  CHECK(of_softmax.ulps() <= 4);
  // A weight is exp(score): scores that are off by e scale it, and the sum that it is divided by, by up to exp(e). A
  // float32 score of 10 that is only rounded is off by 5·10^-7, which is 4 ulp of the weight.
  const double most = 4 + std::expm1(2 * of_scaled.error) / 0x1p-23;
  CHECK(of_attn.ulps() <= most);
  CHECK(of_out.ulps() <= most);
}

}  // namespace

TEST_CASE("float32 weights and outputs agree with float64 to 4 ulp of the largest, and what their scores cost") {
  on_every_target([] {
    for (const Case& c : cases()) {
      CAPTURE(c.name);
      check_case(c);
    }
  });
}
