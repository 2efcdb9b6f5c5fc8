#include "core/base/half_float.h"

#include <bit>
#include <cmath>

namespace qkv {
namespace {

constexpr std::uint32_t kMagnitude = 0x7fffffff;
constexpr std::uint32_t kInfinity = 0x7f800000;
constexpr std::uint32_t kMantissa = 0x007fffff;

// `bits` without its last `count`, rounded to the nearest, ties to even.
std::uint32_t drop_bits(std::uint32_t bits, std::uint32_t count) {
  const std::uint32_t kept = bits >> count, half = 1U << (count - 1), rest = bits & ((1U << count) - 1);
  return rest > half || (rest == half && (kept & 1) != 0) ? kept + 1 : kept;
}

// The magnitude of a float32 that is no NaN, as the magnitude of a float16.
std::uint32_t float16_magnitude(std::uint32_t magnitude) {
  constexpr std::uint32_t kBeyond = 0x477ff000;  // 65520, half way from 65504 to the 65536 that float16 lacks
  constexpr std::uint32_t kNormal = 0x38800000;  // 2^-14, the smallest with all 11 bits
  constexpr std::uint32_t kToZero = 0x33000000;  // 2^-25, half way to the smallest
  constexpr std::uint32_t kRebias = 0x38000000;  // the exponents count from −127 and from −15
  if (magnitude >= kBeyond) return 0x7c00;
  if (magnitude >= kNormal) return drop_bits(magnitude - kRebias, 13);
  if (magnitude <= kToZero) return 0;
  // m·2^(e−150) in units of 2^-24.
  return drop_bits((magnitude & kMantissa) | 0x00800000, 126 - (magnitude >> 23));
}

}  // namespace

std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & kMagnitude) <= kInfinity) return static_cast<std::uint16_t>(drop_bits(bits, 16));
  const std::uint32_t upper = bits >> 16;
  return static_cast<std::uint16_t>((upper & 0x7f) == 0 ? upper | 0x40 : upper);
}

std::uint16_t to_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & kMagnitude, sign = (bits >> 16) & 0x8000;
  if (magnitude <= kInfinity) return static_cast<std::uint16_t>(sign | float16_magnitude(magnitude));
  const std::uint32_t payload = (magnitude >> 13) & 0x3ff;
  return static_cast<std::uint16_t>(sign | 0x7c00 | (payload == 0 ? 0x200 : payload));
}

float from_bfloat16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

float from_float16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1f, mantissa = bits & 0x3ff;
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 31 ? kInfinity : (exponent + 112) << 23;
  return std::bit_cast<float>(sign | wide | (mantissa << 13));
}

}  // namespace qkv
