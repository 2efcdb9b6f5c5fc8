// Bounds of the scores whose weights are taken as exp(score)·2^-exponent, without subtracting a base first.
#pragma once

#include <cstdint>

namespace qkv {

// Rows whose largest score is beyond this, in magnitude, have a base. Within it the exponent has 13 bits, which keeps
// the argument reduction of exp exact also on targets that round products.
inline constexpr float kLargestPlainScore = 4096;

// That of -kLargestPlainScore: round(-4096·log2 e).
inline constexpr std::int32_t kSmallestExponent = -5909;

// Weights below this, before the division by the sum, count as 0. All larger ones are normal float32 numbers, so a
// factor 2^n changes no digit of theirs.
inline constexpr float kSmallestWeight = 0x1p-120f;

// How far a row's largest score may be ahead of its exponent: weights then go up to 2^64.5, and their sums are far from
// the end of float32.
inline constexpr std::int32_t kHeadroom = 64;

}  // namespace qkv
