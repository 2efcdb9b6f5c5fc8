// Softmax over the visible keys of one query.
#pragma once

#include <cstdint>
#include <span>

#include "core/attention/matrix.h"

namespace qkv {

// What the softmax of one row was made of.
struct RowStats {
  double max = 0;          // largest visible scaled score; 0 in a dead row
  double denominator = 0;  // Σ exp(s − max) over visible keys; 0 in a dead row
  Index visible = 0;       // visible keys; 0 = dead row
};

// weights[j] = exp(scaled[j] − max) / Σ over visible j, exactly 0 where keep[j] is 0.
// A row with no visible key is all 0. A visible NaN or +Inf makes every visible weight NaN (IEEE).
// All spans have Nk entries; `weights` may be `scaled`.
RowStats softmax_row(std::span<const double> scaled, std::span<const std::uint8_t> keep, std::span<double> weights);

}  // namespace qkv
