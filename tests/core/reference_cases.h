// The reference tensors' cases with their options, and their files.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/attention/source.h"
#include "core/tensor_io/tensor_file.h"

namespace qkv::test {

inline const std::string kData = QKV_TEST_DATA;
using Values = std::vector<double>;

inline TensorFile open(const std::string& name) {
  Result<TensorFile> file = TensorFile::open(kData + "/" + name);
  REQUIRE_MESSAGE(file.ok(), name);
  return std::move(file).value();
}

inline Values expected(const TensorFile& file, const std::string& name) {
  Result<Tensor64> tensor = file.read_float64(name);
  REQUIRE_MESSAGE(tensor.ok(), name);
  return std::move(tensor).value().values;
}

// A [rows, cols] array, or [cols] as one row.
inline SharedMatrix matrix(const TensorFile& file, const std::string& name) {
  const Result<Tensor> tensor = file.read(name);
  REQUIRE_MESSAGE(tensor.ok(), name);
  const auto& shape = tensor.value().shape;
  REQUIRE((shape.size() == 1 || shape.size() == 2));
  const auto rows = static_cast<Index>(shape.size() == 2 ? shape[0] : 1);
  return Matrix(Eigen::Map<const Matrix>(tensor.value().values.data(), rows, static_cast<Index>(shape.back())));
}

// A [heads, rows, cols] array.
inline std::vector<SharedMatrix> head_matrices(const TensorFile& file, const std::string& name) {
  const Result<Tensor> tensor = file.read(name);
  REQUIRE_MESSAGE(tensor.ok(), name);
  const auto& shape = tensor.value().shape;
  REQUIRE(shape.size() == 3);
  const auto rows = static_cast<Index>(shape[1]), cols = static_cast<Index>(shape[2]);
  std::vector<SharedMatrix> heads;
  for (Index h = 0; h < static_cast<Index>(shape[0]); ++h) {
    const float* first = tensor.value().values.data() + h * rows * cols;
    heads.emplace_back(Matrix(Eigen::Map<const Matrix>(first, rows, cols)));
  }
  return heads;
}

struct Case {
  std::string name;
  AttentionOptions options = {};
  // What the options' float32 numbers are off from the reference's float64 ones by, at most.
  double rounding = 0;
};

// The bias of the case of that name, from the manifest.
inline SharedMatrix reference_bias() {
  Matrix bias(6, 6);
  bias << 1.564f, 0.716f, -0.656f, 0.017f, -0.927f, 2.31f, 1.025f, 4.015f, -0.73f, 2.925f, -1.149f, -0.333f, -2.087f,
      1.062f, -0.109f, 1.259f, 3.005f, -0.101f, 0.775f, 1.818f, -0.107f, -1.087f, 0.73f, 1.023f, 1.579f, 1.684f,
      -1.329f, 0.906f, 2.484f, -0.918f, 0.742f, -1.229f, 0.349f, 3.498f, 0.361f, -1.924f;
  return bias;
}

inline const Case kCases[] = {
    {"plain"},
    {"one_token"},
    {"one_dim"},
    {"odd_sizes"},
    {"cross"},
    {"tile_edges"},
    {"causal", {.causal = true}},
    {"causal_cross_bottom_right", {.causal = true, .align = CausalAlign::kBottomRight}},
    {"causal_cross_top_left", {.causal = true, .align = CausalAlign::kTopLeft}},
    {"window_causal", {.causal = true, .window = 4}},
    {"window_both_sides", {.window = 3}},
    {"padding", {.key_valid = {1, 1, 1, 1, 1, 1, 0, 0, 0}}},
    {"padding_all", {.key_valid = {0, 0, 0, 0}}},
    // The manifest's decimals are float64 in the reference: half an ulp of 4.015, the largest.
    {"bias", {.bias = reference_bias()}, 0x1p-22},
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

// The inputs of a case with its options.
inline Problem problem_of(const Case& c) {
  const TensorFile file = open("sdpa/" + c.name + ".npz");
  return {.source = DirectSource{head_matrices(file, "q"), head_matrices(file, "k"), head_matrices(file, "v")},
          .options = c.options};
}

}  // namespace qkv::test
