// The attention options of a session, with the keys that files and the command line use.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/attention/matrix.h"
#include "core/attention/shared_matrix.h"

namespace qkv {

// Which query row the causal diagonal ends at when Nq ≠ Nk.
enum class CausalAlign {
  kBottomRight,  // the last query sees the last key: i += Nk − Nq
  kTopLeft,      // the first query sees the first key alone: i is not shifted
};

// Which columns of a head of size d rotary position embedding rotates together.
enum class RopeStyle {
  kHalf,         // (x_i, x_{i+d/2}), as Llama in Hugging Face
  kInterleaved,  // (x_2i, x_2i+1), as GPT-J
};

// Rotary position embedding (Su et al. 2021, RoFormer): pair i of a row is turned by the angle
// position · base^(−2i/d). Positions count from 0 on either side, whatever the alignment. Needs an even d_k.
struct Rope {
  float base = 10000;  // above 1
  RopeStyle style = RopeStyle::kHalf;
  bool operator==(const Rope&) const = default;
};

// A file's numbers are float32: whole ones up to here are exact.
inline constexpr Index kMaxWindow = Index{1} << 24;

// In the order in which they act: rope; scale, softcap, alibi, bias; causal, window, key_valid; sink.
// i is the query's position, j the key's; causal, window and alibi use i + query_shift().
struct AttentionOptions {
  std::optional<float> scale = {};  // multiplies QKᵀ; absent = 1/√d_k
  bool causal = false;              // keep j ≤ i
  CausalAlign align = CausalAlign::kBottomRight;
  std::vector<std::uint8_t> key_valid = {};  // [Nk], 0 = hidden from every query; empty = all valid

  std::optional<Rope> rope = {};          // rotates q and k before their product
  std::optional<float> softcap = {};      // c > 0: s = c · tanh(s / c) (Gemma 2), so |s| < c
  bool alibi = false;                     // s −= slope_h · |i − j| (Press et al. 2022), see alibi_slope()
  std::optional<SharedMatrix> bias = {};  // [Nq, Nk], added to s of every head
  std::optional<Index> window = {};       // 1 … kMaxWindow: keep |i − j| < window, on both sides unless causal
  std::vector<float> sink = {};           // [H], a logit in the denominator alone (GPT-OSS); empty = none

  bool operator==(const AttentionOptions&) const = default;
};

// The factor that QKᵀ is multiplied by, in float64.
double effective_scale(const AttentionOptions& options, Index d_k);

// The sink's logit of a head, where there is one.
std::optional<double> sink_of(const AttentionOptions& options, int head);

// What is added to a query's row to get its position among the keys: Nk − Nq for kBottomRight, else 0.
Index query_shift(const AttentionOptions& options, Index nq, Index nk);

// Why a key is hidden from a query. Where there are several reasons, the first in this order.
enum class MaskReason { kVisible, kCausal, kWindow, kPadding };

// Query row `i` of `nq`, key `j` of `nk`.
MaskReason mask_reason(const AttentionOptions& options, Index nq, Index nk, Index i, Index j);

// [Nq, Nk], 1 = visible; the same for every head.
KeepMatrix keep_matrix(const AttentionOptions& options, Index nq, Index nk);

}  // namespace qkv
