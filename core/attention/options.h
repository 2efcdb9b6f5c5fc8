// The attention options of a session, with the keys that files and the command line use.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/attention/matrix.h"

namespace qkv {

// Which query row the causal diagonal ends at when Nq ≠ Nk.
enum class CausalAlign {
  kBottomRight,  // the last query sees the last key: i += Nk − Nq
  kTopLeft,      // the first query sees the first key alone: i is not shifted
};

struct AttentionOptions {
  std::optional<float> scale = {};  // multiplies QKᵀ; absent = 1/√d_k
  bool causal = false;              // keep j ≤ i
  CausalAlign align = CausalAlign::kBottomRight;
  std::vector<std::uint8_t> key_valid = {};  // [Nk], 0 = hidden from every query; empty = all valid

  bool operator==(const AttentionOptions&) const = default;
};

// The factor that QKᵀ is multiplied by, in float64.
double effective_scale(const AttentionOptions& options, Index d_k);

// Why a key is hidden from a query.
enum class MaskReason { kVisible, kCausal, kPadding };

// Query row `i` of `nq`, key `j` of `nk`.
MaskReason mask_reason(const AttentionOptions& options, Index nq, Index nk, Index i, Index j);

// [Nq, Nk], 1 = visible; the same for every head.
KeepMatrix keep_matrix(const AttentionOptions& options, Index nq, Index nk);

}  // namespace qkv
