// A computation of attention that departs from ours in one or more of the ways in which programs often do.
#pragma once

#include <array>
#include <optional>

#include "core/attention/number_format.h"
#include "core/attention/source.h"

namespace qkv {

struct OtherMatrix;

// How a program cuts [N, H·d] into heads, or puts heads together.
enum class HeadCut {
  kInBlocks,     // head h is columns h·d … h·d + d − 1: ours
  kInterleaved,  // column j of head h is column h + H·j
  kUncut,        // the numbers of [N, H·d], row after row, are read as [H, N, d] without swapping axes
};

// What Q, K and V are. Index 0, 1, 2 of an array is Q, K, V.
struct AlteredInputs {
  std::array<bool, 3> transposed = {};  // W used as its transpose; square ones only
  std::array<bool, 3> no_bias = {};
  std::array<HeadCut, 3> layout = {};
  std::array<int, 3> taken_from = {0, 1, 2};  // which of ours stands there
  bool reversed_queries = false, reversed_keys = false;

  std::optional<Rope> rope = {};
  bool rope_backwards = false;  // by the negative angle
  bool rope_on_queries = true, rope_on_keys = true;
  Index first_query_position = 0;
  bool shows_rotated = false;  // q and k are given after the rotation

  bool operator==(const AlteredInputs&) const = default;
};

enum class AlibiSlopes {
  kOurs,
  kFromZero,    // 2^(−8h/H): the first head has slope 1
  kPlainPower,  // 2^(−8(h+1)/H) for any number of heads
};

// From a raw score to the one that softmax sees.
struct AlteredScaling {
  double scale = 1;
  std::optional<double> softcap = {};
  bool softcap_before_scale = false, softcap_last = false;
  double alibi = 0;  // 1 = on, −1 = with the wrong sign
  AlibiSlopes slopes = AlibiSlopes::kOurs;
  bool alibi_signed = false;  // −slope·(i − j) on both sides
  bool alibi_unshifted = false;
  bool alibi_before_scale = false;
  double bias = 1;  // its factor, where there is a bias
  bool bias_before_scale = false, bias_transposed = false;
};

// Which keys a query sees.
struct AlteredMask {
  bool causal = false;
  bool upside_down = false;                      // causal keeps j ≥ i
  Index diagonal = 0;                            // causal keeps j ≤ i + diagonal
  Index shift = 0;                               // added to a query's row, as by query_shift()
  std::optional<Index> before = {}, after = {};  // keep i − j < before, j − i < after
  bool ignores_padding = false, inverted_padding = false;
  std::optional<std::vector<std::uint8_t>> key_valid = {};  // [Nk], instead of the problem's
};

enum class MaskUse {
  kExclude,     // hidden keys take no part: ours
  kAfterwards,  // hidden weights become 0 after the softmax
  kZeroScore,   // the scores are multiplied by the mask
  kFill,        // a hidden score becomes `fill`
  kAdd,         // `fill` is added to a hidden score, in float32
};
enum class DeadRows { kZero, kNan, kUniform };
enum class SoftmaxOver { kKeys, kQueries, kHeads };

struct AlteredSoftmax {
  MaskUse mask_use = MaskUse::kExclude;
  double fill = 0;
  DeadRows dead = DeadRows::kZero;
  SoftmaxOver over = SoftmaxOver::kKeys;
  bool not_divided = false;               // exponentials that are not divided by their sum
  bool overflows = false;                 // exponentials in float32 of the scores as they are
  std::vector<double> sink = {};          // [H], or empty
  bool transposed = false;                // the weights are Aᵀ; Nq = Nk
  const OtherMatrix* zeros_of = nullptr;  // where these are 0, the weights are; elsewhere `factor` times as large
  double factor = 1;
};

// What an array of that name holds.
enum class HeldStep { kScores, kScaled, kMasked, kAttn };  // kMasked: scaled, −Inf where hidden

// What follows the heads.
struct AlteredOutput {
  HeadCut concat = HeadCut::kInBlocks;
  bool transposed_wo = false, no_wo = false, no_bo = false;
  bool residual = false;  // X is added
};

struct Altered {
  AlteredInputs inputs;
  bool tiled = false;  // head h reads key/value head h mod H_kv
  AlteredScaling scaling;
  AlteredMask mask;
  AlteredSoftmax softmax;
  AlteredOutput output;
  HeldStep scores_are = HeldStep::kScores, scaled_are = HeldStep::kScaled, attn_is = HeldStep::kAttn;
  NumberFormat format = NumberFormat::kFloat64;  // what every step is rounded to; sums are not
};

// Ours: what forward() computes, under the problem's options.
Altered unaltered(const Problem& problem, const Shapes& shapes);

}  // namespace qkv
