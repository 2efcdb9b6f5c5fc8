// The short formulas of a session's options, as titles and headlines write them.
#pragma once

#include <string>

#include "core/attention/options.h"

namespace qkv {

// What the raw scores are: "QKᵀ", or "R(Q)·R(K)ᵀ" where a rope turns both.
std::string scores_formula(const AttentionOptions& options);

// What softmax sees before the mask, in the order in which it acts: "S/√dₖ", "0.5·S", "cap(S/√dₖ) + ALiBi + B".
std::string scaled_formula(const AttentionOptions& options);

// The whole of one head: "softmax(QKᵀ/√dₖ + B)·V". A sink stands behind a semicolon, since it gets no value.
std::string attention_formula(const AttentionOptions& options);

// A factor in few characters: "0.5", or three significant digits of a longer number ("0.0884", "1.23e+08").
std::string factor_text(float factor);

}  // namespace qkv
