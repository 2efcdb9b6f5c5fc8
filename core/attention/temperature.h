// Temperature: the scale of the scores seen from the other side, scale = 1 / (T·√d_k).
#pragma once

#include "core/attention/options.h"

namespace qkv {

// What the window's slider offers. T → 0 would be one-hot attention by dividing by 0.
inline constexpr double kLeastTemperature = 0.01, kMostTemperature = 100;

// T of these options: 1 for the usual 1/√d_k, +Inf for a scale of 0, below 0 for a negative scale.
double temperature(const AttentionOptions& options, Index d_k);

// Sets the scale to 1 / (t·√d_k), rounded to float32; T = 1 is the default, so the scale becomes absent. `t` > 0.
void set_temperature(AttentionOptions& options, double t, Index d_k);

}  // namespace qkv
