// Decimals that other readers round to the same bits.
#include "core/base/portable_number.h"

#include <doctest/doctest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <random>

#include "core/base/number_text.h"

using namespace qkv;

namespace {

// As a reader does that knows float64 alone.
float through_float64(const std::string& text) {
  double wide = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), wide);
  REQUIRE(problem == std::errc{});
  REQUIRE(end == text.data() + text.size());
  return static_cast<float>(wide);
}

}  // namespace

TEST_CASE("portable numbers: rounded twice they are the same float32") {
  // The shortest text of this one is so near the middle of two that float64 falls on it.
  const float hard = std::bit_cast<float>(0x15AE43FDu);
  CHECK(through_float64(format_shortest(hard)) != hard);
  CHECK(through_float64(portable_number(hard)) == hard);
  std::mt19937 random(1);
  for (int n = 0; n < 300000; ++n) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!std::isfinite(value)) continue;
    const std::string text = portable_number(value);
    if (std::bit_cast<std::uint32_t>(through_float64(text)) == std::bit_cast<std::uint32_t>(value)) continue;
    FAIL_CHECK(text);
  }
}

TEST_CASE("portable numbers: short where they can be, and no number without its sign") {
  CHECK(portable_number(0.1F) == "0.1");
  CHECK(portable_number(3.0F) == "3");
  CHECK(portable_number(-0.0F) == "-0.0");
  CHECK(portable_number(-0.0) == "-0.0");
  CHECK(portable_number(1e30F) == "1e+30");
  CHECK(portable_number(std::numeric_limits<float>::quiet_NaN()) == "nan");
  CHECK(portable_number(-std::numeric_limits<float>::infinity()) == "-inf");
  CHECK(portable_number(0.1) == "0.1");
  CHECK(portable_number(static_cast<double>(0.1F)) == "0.10000000149011612");
}
