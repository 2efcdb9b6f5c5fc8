// bfloat16 and float16 (IEEE 754 binary16) as their 16 bits.
#pragma once

#include <cstdint>

namespace qkv {

// To the nearest, ties to the one with an even last bit; beyond the range to ±Inf, subnormals kept. A NaN stays a NaN,
// with as much of its payload as fits. bfloat16 is the upper half of a float32: 8 bits of precision and its range.
// float16 has 11 bits of precision, 65504 as its largest number and 2^-24 as its smallest.
std::uint16_t to_bfloat16(float value);
std::uint16_t to_float16(float value);

// Exact.
float from_bfloat16(std::uint16_t bits);
float from_float16(std::uint16_t bits);

}  // namespace qkv
