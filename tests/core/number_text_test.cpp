#include "core/base/number_text.h"

#include <doctest/doctest.h>

#include <bit>
#include <clocale>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <locale>
#include <random>
#include <string>

using namespace qkv;

TEST_SUITE("number_text") {
  TEST_CASE("float32 and float64 round trip through the shortest text, for random bit patterns") {
    std::mt19937_64 random(20240607);
    for (int i = 0; i < 200'000; ++i) {
      const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
      const std::optional<float> back = parse_float(format_shortest(value));
      REQUIRE_MESSAGE(back.has_value(), format_shortest(value));
      if (std::isnan(value)) {
        REQUIRE(std::isnan(*back));
      } else {
        REQUIRE_MESSAGE(std::bit_cast<std::uint32_t>(*back) == std::bit_cast<std::uint32_t>(value),
                        format_shortest(value));
      }
      const double wide = std::bit_cast<double>(random());
      if (std::isfinite(wide)) REQUIRE(std::strtod(format_shortest(wide).c_str(), nullptr) == wide);
    }
  }

  TEST_CASE("the shortest text is short") {
    CHECK(format_shortest(0.1f) == "0.1");
    CHECK(format_shortest(1e30f) == "1e+30");
    CHECK(format_shortest(0.1) == "0.1");
    CHECK(format_shortest(1.0 / 3) == "0.3333333333333333");
    CHECK(format_shortest(-0.0f) == "-0");
    const float nan = std::numeric_limits<float>::quiet_NaN();
    CHECK(format_shortest(nan) == "nan");
    CHECK(format_shortest(-nan) == "nan");
    CHECK(format_shortest(-std::numeric_limits<float>::infinity()) == "-inf");
    CHECK(format_shortest(std::numeric_limits<double>::infinity()) == "inf");
  }

  TEST_CASE("fixed decimals") {
    CHECK(format_fixed(1.0, 2) == "1.00");
    CHECK(format_fixed(-0.5, 1) == "−0.5");
    CHECK(format_fixed(-0.5, 1, false) == "-0.5");
    CHECK(format_fixed(-0.0001, 2) == "0.00");
    CHECK(format_fixed(-0.0001, 2, false) == "0.00");
    CHECK(format_fixed(-0.0, 0) == "0");
    CHECK(format_fixed(2.5, 0) == "2");
    CHECK(format_fixed(0.6134, 4) == "0.6134");
    CHECK(format_fixed(1.5, -3) == "2");
    CHECK(format_fixed(std::numeric_limits<double>::max(), 3).size() == 309 + 4);
    CHECK(format_fixed(5e-324, 2000).size() == 1102);
    CHECK(format_fixed(std::nan(""), 2) == "NaN");
    CHECK(format_fixed(HUGE_VAL, 2) == "∞");
    CHECK(format_fixed(-HUGE_VAL, 2) == "−∞");
    CHECK(format_fixed(-HUGE_VAL, 2, false) == "-∞");
  }

  TEST_CASE("values for a person are fixed until that hides the digits") {
    CHECK(format_value(0, 2) == "0.00");
    CHECK(format_value(-0.0, 2) == "0.00");
    CHECK(format_value(1.234, 2) == "1.23");
    CHECK(format_value(999'999, 0) == "999999");
    CHECK(format_value(1e6, 2) == "1.00e+06");
    CHECK(format_value(1.23e8, 2) == "1.23e+08");
    CHECK(format_value(-1.23e8, 2) == "−1.23e+08");
    CHECK(format_value(0.00123, 2) == "1.23e−03");
    CHECK(format_value(-0.00123, 2, false) == "-1.23e-03");
    CHECK(format_value(0.006, 2) == "0.01");
    CHECK(format_value(std::nan(""), 2) == "NaN");
    CHECK(format_value(-HUGE_VAL, 2) == "−∞");
  }

  TEST_CASE("what is a number") {
    CHECK(parse_float("1") == 1.0f);
    CHECK(parse_float(" \t-2.5e3\r\n") == -2500.0f);
    CHECK(parse_float("+4") == 4.0f);
    CHECK(parse_float(".5") == 0.5f);
    CHECK(parse_float("5.") == 5.0f);
    CHECK(parse_float("−1") == -1.0f);
    CHECK(parse_float("1.23e−03") == 1.23e-3f);
    CHECK(parse_float("\u00a0\u30007\u2003") == 7.0f);
    CHECK(parse_float("inf") == HUGE_VALF);
    CHECK(parse_float("+Inf") == HUGE_VALF);
    CHECK(parse_float("-inf") == -HUGE_VALF);
    REQUIRE(parse_float("NaN").has_value());
    CHECK(std::isnan(*parse_float("nan")));
    CHECK(std::signbit(*parse_float("-0")));
    CHECK(parse_float("3.4028235e38") == std::numeric_limits<float>::max());
    CHECK(parse_float("1e-50") == 0.0f);
    CHECK(parse_float("1e-45") == std::numeric_limits<float>::denorm_min());
  }

  TEST_CASE("what is a float64 number") {
    CHECK(parse_double("0.1") == 0.1);
    CHECK(parse_double(" −1e300") == -1e300);
    CHECK(parse_double("5e-324") == std::numeric_limits<double>::denorm_min());
    CHECK(parse_double("inf") == HUGE_VAL);
    CHECK(std::isnan(*parse_double("NaN")));
    for (const char* text : {"", "x", "1,5", "1e400", "1e-400", "--1"}) CHECK_MESSAGE(!parse_double(text), text);
  }

  TEST_CASE("what is not") {
    for (const char* text :
         {"",   " ",  "x",    "1x",       "1 2",    "1,5",  "--1",   "+-1",   "-+1",   "−−1",   "+",    "-", ".",
          "e5", "1e", "0x10", "infinity", "nan(1)", "1e39", "-1e39", "1e400", "1.5.2", "1_000", "\xff", "１"}) {
      CHECK_MESSAGE(!parse_float(text).has_value(), text);
    }
    CHECK(!parse_float(std::string_view("1\0", 2)).has_value());
  }

  TEST_CASE("a decimal comma locale changes nothing") {
    const std::string before = std::setlocale(LC_ALL, nullptr);
    const char* found = nullptr;
    for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8", "de_DE"}) {
      if (!found && std::setlocale(LC_ALL, name)) found = name;
    }
    if (!found) MESSAGE("no decimal-comma C locale is installed: only the C++ global locale is tested");

    struct Comma : std::numpunct<char> {
      char do_decimal_point() const override { return ','; }
      char do_thousands_sep() const override { return '.'; }
      std::string do_grouping() const override { return "\3"; }
    };
    const std::locale previous = std::locale::global(std::locale(std::locale::classic(), new Comma));
    CHECK(format_shortest(1234.5f) == "1234.5");
    CHECK(format_fixed(1234.5, 2) == "1234.50");
    CHECK(format_value(0.00012, 1) == "1.2e−04");
    CHECK(parse_float("1234.5") == 1234.5f);
    CHECK(!parse_float("1234,5").has_value());
    std::locale::global(previous);
    std::setlocale(LC_ALL, before.c_str());
  }
}
