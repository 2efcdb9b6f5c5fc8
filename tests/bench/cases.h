// The cases of the comparison of attention with other libraries: float32, heads of 64 columns.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace qkv::bench {

// What a case leaves behind.
enum class Work {
  kKept,   // the weights A of every head, each cell of them, and O
  kFused,  // O alone
  kLayer,  // X → Q, K, V → heads → Concat → W^O; the layer's output alone
};

inline constexpr int kHeadSize = 64;    // d: columns of Q, K and V in one head
inline constexpr int kModelSize = 512;  // columns of X and of the layer's output

struct Case {
  std::string_view name;
  Work work = Work::kKept;
  int heads = 0;
  int n = 0;  // queries and keys
  bool causal = false;
  bool quick = false;  // one of the few that --quick runs

  // Visible (query, key) cells of one head.
  double pairs() const { return causal ? 0.5 * n * (n + 1.0) : static_cast<double>(n) * n; }
  // Floating-point operations that no method can leave out: both products of attention and, in a layer, the
  // projections.
  double flops() const {
    const double attention = 4.0 * heads * pairs() * kHeadSize;
    const double projections = 2.0 * n * kModelSize * (3.0 * heads * kHeadSize + kModelSize);
    return work == Work::kLayer ? attention + projections : attention;
  }
  double exps() const { return heads * pairs(); }
};

inline constexpr std::array<Case, 15> kCases{{
    {"kept-8x64", Work::kKept, 8, 64},
    {"kept-8x128", Work::kKept, 8, 128, false, true},
    {"kept-8x256", Work::kKept, 8, 256},
    {"kept-8x512", Work::kKept, 8, 512},
    {"kept-8x1024", Work::kKept, 8, 1024, false, true},
    {"kept-8x2048", Work::kKept, 8, 2048},
    {"kept-1x4096", Work::kKept, 1, 4096},
    {"kept-8x1024-causal", Work::kKept, 8, 1024, true, true},
    {"fused-8x2048", Work::kFused, 8, 2048, false, true},
    {"fused-8x4096", Work::kFused, 8, 4096},
    {"fused-1x16384", Work::kFused, 1, 16384},
    {"fused-8x2048-causal", Work::kFused, 8, 2048, true},
    {"fused-8x4096-causal", Work::kFused, 8, 4096, true},
    {"fused-1x16384-causal", Work::kFused, 1, 16384, true},
    {"layer-1024", Work::kLayer, 8, 1024, false, true},
}};

inline std::optional<Case> find_case(std::string_view name) {
  for (const Case& each : kCases) {
    if (each.name == name) return each;
  }
  return std::nullopt;
}

}  // namespace qkv::bench
