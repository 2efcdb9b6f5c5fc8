// bfloat16 and float16 over every pattern of 16 bits, every tie between two of them, and their borders.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>

#include "core/base/half_float.h"

using namespace qkv;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Format {
  const char* name;
  std::uint16_t (*to)(float);
  float (*from)(std::uint16_t);
  std::uint32_t infinity;  // its bits; those above are NaN
};

constexpr Format kFormats[] = {{"bfloat16", to_bfloat16, from_bfloat16, 0x7f80},
                               {"float16", to_float16, from_float16, 0x7c00}};

// The value of a pattern from the format's definition, in float64.
double value_of(const Format& format, std::uint32_t bits) {
  const int mantissa_bits = format.infinity == 0x7f80 ? 7 : 10;
  const int bias = format.infinity == 0x7f80 ? 127 : 15;
  const auto exponent = static_cast<int>((bits & 0x7fff) >> mantissa_bits);
  const auto mantissa = static_cast<double>(bits & ((1U << mantissa_bits) - 1));
  const double one = std::ldexp(1.0, mantissa_bits);
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                                         : std::ldexp(one + mantissa, exponent - bias - mantissa_bits);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

}  // namespace

TEST_CASE("every pattern of 16 bits is the number that the format defines and comes back the same") {
  for (const Format& format : kFormats) {
    CAPTURE(format.name);
    int wrong_value = 0, wrong_bits = 0;
    for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
      const auto pattern = static_cast<std::uint16_t>(bits);
      const float value = format.from(pattern);
      const std::uint32_t magnitude = bits & 0x7fff;
      const bool right = magnitude > format.infinity    ? std::isnan(value)
                         : magnitude == format.infinity ? value == ((bits & 0x8000) != 0 ? -kInf : kInf)
                                                        : static_cast<double>(value) == value_of(format, bits) &&
                                                              std::signbit(value) == ((bits & 0x8000) != 0);
      wrong_value += right ? 0 : 1;
      wrong_bits += format.to(value) == pattern ? 0 : 1;
    }
    CHECK(wrong_value == 0);
    CHECK(wrong_bits == 0);
  }
}

TEST_CASE("between any two neighbours the nearer is taken, and half way the even one, up to infinity") {
  for (const Format& format : kFormats) {
    CAPTURE(format.name);
    int wrong = 0;
    for (std::uint32_t low = 0; low < format.infinity; ++low) {
      // Above the largest number stands what would be the next one: from half way there on it is infinity. bfloat16's
      // is 2^128, so that the midpoint is taken in float64.
      const double below = value_of(format, low), above = value_of(format, low + 1);
      const auto middle = static_cast<float>((below + above) / 2);
      REQUIRE(static_cast<double>(middle) == (below + above) / 2);
      const std::uint32_t even = low % 2 == 0 ? low : low + 1;
      for (const std::uint32_t sign : {0U, 0x8000U}) {
        const float side = sign == 0 ? 1.0f : -1.0f;
        wrong += format.to(side * middle) == (sign | even) ? 0 : 1;
        wrong += format.to(side * std::nextafter(middle, 0.0f)) == (sign | low) ? 0 : 1;
        wrong += format.to(side * std::nextafter(middle, kInf)) == (sign | (low + 1)) ? 0 : 1;
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("the borders of the formats by their numbers") {
  CHECK(from_float16(0x7bff) == 65504.0f);
  CHECK(from_float16(0x0001) == 0x1p-24f);
  CHECK(from_float16(0x0400) == 0x1p-14f);
  CHECK(to_float16(65519.996f) == 0x7bff);
  CHECK(to_float16(65520.0f) == 0x7c00);
  CHECK(to_float16(-1e6f) == 0xfc00);
  CHECK(to_float16(0x1p-25f) == 0);
  CHECK(to_float16(-0x1p-25f) == 0x8000);
  CHECK(to_float16(std::nextafter(0x1p-25f, 1.0f)) == 1);
  CHECK(to_float16(1e-45f) == 0);
  CHECK(from_bfloat16(0x7f7f) == 0x1.fep127f);
  CHECK(to_bfloat16(std::numeric_limits<float>::max()) == 0x7f80);
  CHECK(to_bfloat16(1.00390625f) == 0x3f80);  // half way from 1 to the next, 1 + 2^-7
  CHECK(to_bfloat16(1.01171875f) == 0x3f82);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(from_float16(to_float16(nan))));
  CHECK(std::isnan(from_bfloat16(to_bfloat16(-nan))));
}
