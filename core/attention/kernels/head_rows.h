// What a block of query rows is computed with: who sees what, and the state of each row's softmax.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/attention/kernels/panels.h"
#include "core/attention/kernels/softmax_exponent.h"

namespace qkv {

// Rows that are computed together at most: a multiple of the 6 rows of a register tile.
inline constexpr Index kMaxBlockRows = 96;
inline constexpr Index kGroupRows = 6;

// An exponent of sums to which nothing has been added.
inline constexpr std::int32_t kNoExponent = std::numeric_limits<std::int32_t>::min();

// The softmax of one row over the key blocks so far. `exponent` follows the largest score from below: only when that is
// ahead by more than kHeadroom are the sums rescaled.
struct OnlineRow {
  KeyRange range;
  Index visible = 0;
  float max = 0;   // largest scaled score less `base`
  float base = 0;  // subtracted from each scaled score
  std::int32_t exponent = kNoExponent;
  double sum = 0;     // Σ exp(score)·2^-exponent
  float rescale = 1;  // what the last key block multiplied earlier sums with: a power of two
};

// Keys in at least one of the two ranges, and those between.
inline KeyRange joint_range(KeyRange a, KeyRange b) {
  if (a.first >= a.last) return b;
  if (b.first >= b.last) return a;
  return {std::min(a.first, b.first), std::max(a.last, b.last)};
}

// 2^exponent, and 0 where that is no normal number. `exponent` up to 127.
inline float power_of_two(std::int32_t exponent) {
  return exponent < -126 ? 0.0f : std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
}

// x·2^exponent, what std::ldexp gives.
inline double times_power_of_two(double x, std::int32_t exponent) {
  if (exponent < -1022 || exponent > 1023) return std::ldexp(x, exponent);
  return x * std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

// Makes the row ready for scores with that exponent. True where that changed its own.
inline bool raise_exponent(OnlineRow& row, std::int32_t exponent) {
  if (row.exponent != kNoExponent && exponent <= row.exponent + kHeadroom) return false;
  if (row.exponent != kNoExponent) {
    row.rescale *= power_of_two(row.exponent - exponent);
    row.sum = times_power_of_two(row.sum, row.exponent - exponent);
  }
  row.exponent = exponent;
  return true;
}

// Whether raise_exponent would leave the row as it is for that score, without its exponent. False for NaN.
inline bool is_within_headroom(const OnlineRow& row, float score) {
  return score * 0x1.715476p0f <= static_cast<float>(row.exponent + kHeadroom);
}

// Rows that attend_rows computes together. `whole_rows`: all cells of a row are held until its sum is known.
Index block_rows(const HeadInput& input, bool whole_rows);

struct KernelScratch::Impl {
  AlignedBuffer cells;                          // scores and weights: of a key block, or of whole rows
  AlignedBuffer sums;                           // weights·V, [rows, d_v rounded up to panels]
  AlignedBuffer lane_sums;                      // of a key block's weights, [rows, lanes]
  AlignedBuffer line;                           // one row of scores or weights
  std::vector<OnlineRow> online;                // of the rows that are computed together
  AlignedBuffer q;                              // rows of Q, one beside the other
  std::vector<float> non_finite;                // what NaN and infinite values add to the output, [rows, d_v]
  std::vector<std::int32_t> exponents;          // of a row in each key block, [rows, blocks]
  std::vector<std::int32_t> summary_exponents;  // of the weights in KeyBlockOutput, [rows, blocks]
  std::vector<Index> valid_before;              // keys before a key that key_valid does not hide, [Nk + 1]
};

}  // namespace qkv
