// Heads of random numbers for the kernels, and attention in float64 to hold them to.
#pragma once

#include <doctest/doctest.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/attention/kernels/gemm.h"
#include "core/attention/kernels/head_kernel.h"

namespace qkv::test {

inline constexpr float kKernelNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kKernelInf = std::numeric_limits<float>::infinity();
inline constexpr double kHalfUlp = 0x1p-24;  // relative error of one float32 rounding

// Calls test() once for each SIMD target that this processor has, then sets the best one again.
template <class Test>
void on_every_target(const Test& test) {
  std::string names;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    const std::string name = kernel_target();
    CHECK(name == hwy::TargetName(target));
    names += (names.empty() ? "" : " ") + name;
    CAPTURE(name);
    test();
  }
  hwy::SetSupportedTargetsForTest(0);
  MESSAGE("ran on ", names);
}

// Cells at a chosen distance from a 64-byte boundary, with a sentinel behind each row and around all.
class Cells {
 public:
  Cells() = default;
  Cells(Index rows, Index cols, Index offset = 0, Index gap = 3)
      : rows_(rows), cols_(cols), stride_(cols + gap), data_(static_cast<std::size_t>(rows * stride_ + 80), kSentinel) {
    const auto address = reinterpret_cast<std::uintptr_t>(data_.data());
    first_ = static_cast<Index>((64 - address % 64) % 64 / sizeof(float)) + offset;
  }
  // Copies would begin at another distance from the boundary.
  Cells(const Cells&) = delete;
  Cells& operator=(const Cells&) = delete;
  Cells(Cells&&) = default;
  Cells& operator=(Cells&&) = default;

  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  float* row(Index r) { return data_.data() + first_ + r * stride_; }
  const float* row(Index r) const { return data_.data() + first_ + r * stride_; }
  float& operator()(Index r, Index c) { return row(r)[c]; }
  float operator()(Index r, Index c) const { return row(r)[c]; }
  FloatView view() const { return {row(0), rows_, cols_, stride_}; }
  FloatBlock block() { return {row(0), rows_, cols_, stride_}; }

  Cells& fill(std::mt19937& random, float deviation = 1) {
    std::normal_distribution<float> normal(0, deviation);
    for (Index r = 0; r < rows_; ++r) {
      for (Index c = 0; c < cols_; ++c) (*this)(r, c) = normal(random);
    }
    return *this;
  }
  Cells& fill(float value) {
    for (Index r = 0; r < rows_; ++r) std::fill_n(row(r), cols_, value);
    return *this;
  }

  // Whether nothing outside of the cells was written.
  bool is_intact() const {
    for (Index i = 0; i < static_cast<Index>(data_.size()); ++i) {
      const Index at = i - first_;
      const bool cell = at >= 0 && at < rows_ * stride_ && at % stride_ < cols_;
      if (!cell && data_[static_cast<std::size_t>(i)] != kSentinel) return false;
    }
    return true;
  }

 private:
  static constexpr float kSentinel = -12345.678f;
  Index rows_ = 0, cols_ = 0, stride_ = 0, first_ = 0;
  std::vector<float> data_;
};

// Equal in every bit, where a NaN is as good as another.
inline bool same_bits(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}
inline bool same_bits(const RowSoftmax& a, const RowSoftmax& b) {
  const bool same_sum = (std::isnan(a.sum) && std::isnan(b.sum)) ||
                        std::bit_cast<std::uint64_t>(a.sum) == std::bit_cast<std::uint64_t>(b.sum);
  return same_bits(a.max, b.max) && same_bits(a.base, b.base) && a.exponent == b.exponent && same_sum &&
         a.visible == b.visible;
}
inline bool same_bits(const Cells& a, const Cells& b) {
  if (a.rows() != b.rows() || a.cols() != b.cols()) return false;
  for (Index r = 0; r < a.rows(); ++r) {
    for (Index c = 0; c < a.cols(); ++c) {
      if (!same_bits(a(r, c), b(r, c))) return false;
    }
  }
  return true;
}
inline bool same_bits(const std::vector<RowSoftmax>& a, const std::vector<RowSoftmax>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const RowSoftmax& x, const RowSoftmax& y) { return same_bits(x, y); });
}

// One head and what it is made of.
struct Head {
  Cells q, k, v, bias;
  std::vector<std::uint8_t> key_valid;
  KernelScaling scaling;
  KernelMask mask;
  std::optional<float> sink;

  Head(Index nq, Index nk, Index d_k, Index d_v, std::mt19937& random, Index offset = 0)
      : q(nq, d_k, offset), k(nk, d_k, offset), v(nk, d_v, offset) {
    q.fill(random);
    k.fill(random);
    v.fill(random);
    scaling.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(d_k)));
    scaling.shift = mask.shift = nk - nq;
  }
  Index nq() const { return q.rows(); }
  Index nk() const { return k.rows(); }
  HeadInput input(const PackedKeyValues& kv) {
    if (bias.rows() > 0) scaling.bias = bias.view();
    mask.key_valid = key_valid.empty() ? nullptr : key_valid.data();
    return {q.view(), &kv, scaling, mask, sink};
  }
  bool sees(Index i, Index j) const {
    const KeyRange range = visible_range(mask, i, nk());
    return j >= range.first && j < range.last && (key_valid.empty() || key_valid[static_cast<std::size_t>(j)] != 0);
  }
};

// What attend_rows writes, with room for all of it.
struct Results {
  Cells scores, weights, out;
  std::vector<RowSoftmax> rows;
  explicit Results(const Head& head, Index offset = 0)
      : scores(head.nq(), head.nk(), offset),
        weights(head.nq(), head.nk(), offset),
        out(head.nq(), head.v.cols(), offset),
        rows(static_cast<std::size_t>(head.nq())) {
    // A cell that ought to be written and is not shows.
    weights.fill(77);
    out.fill(77);
    scores.fill(77);
  }
  HeadOutput all() { return {scores.block(), weights.block(), out.block(), rows, true}; }
};

inline void attend(const HeadInput& input, const HeadOutput& output) {
  KernelScratch scratch;
  attend_rows(input, 0, input.q.rows, output, scratch);
}

// One row in float64, with bounds of what float32 may differ by.
struct SlowRow {
  std::vector<double> scores, score_bounds, scaled, scaled_bounds, weights, weight_bounds, out, out_bounds;
  double max = -std::numeric_limits<double>::infinity(), sum = 0;
  Index visible = 0;
};

SlowRow slow_row(const Head& head, Index row);

// Holds the results of attend_rows to slow_row.
void check_head(const Head& head, const Results& results);

}  // namespace qkv::test
