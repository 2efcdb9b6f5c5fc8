// Softmax over the visible keys of one query.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/attention/matrix.h"

namespace qkv {

// What the softmax of one row was made of.
struct RowStats {
  double max = 0;  // largest visible scaled score, or the sink where that is more; 0 in a dead row
  double denominator =
      0;              // Σ exp(s − max) over visible keys and the sink, 0 in a dead row; of given weights, their sum
  Index visible = 0;  // visible keys; 0 = dead row
  double sink = 0;    // exp(sink − max) / denominator, the mass that the weights miss; 0 without a sink
};

// weights[j] = exp(scaled[j] − max) / Σ over visible j, exactly 0 where keep[j] is 0.
// A row with no visible key is all 0. A visible NaN or +Inf makes every visible weight NaN (IEEE).
// A `sink` is one more logit in the sum that gets no weight of its own; a dead row stays 0 with it.
// All spans have Nk entries; `weights` may be `scaled`.
RowStats softmax_row(std::span<const double> scaled, std::span<const std::uint8_t> keep, std::span<double> weights,
                     std::optional<double> sink = {});

}  // namespace qkv
