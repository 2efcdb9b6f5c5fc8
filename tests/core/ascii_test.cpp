#include "core/base/ascii.h"

#include <doctest/doctest.h>

using namespace qkv;

TEST_CASE("ascii: small letters of ASCII alone") {
  CHECK(lower_ascii("Q_Proj.WEIGHT [@Z`]{") == "q_proj.weight [@z`]{");
  CHECK(lower_ascii("ÄÉ貓İ") == "ÄÉ貓İ");
  CHECK(lower_ascii("").empty());
}

TEST_CASE("ascii: what is not ASCII") {
  CHECK(is_ascii(""));
  CHECK(is_ascii("a\x7f\n"));
  CHECK_FALSE(is_ascii("é"));
  CHECK_FALSE(is_ascii("a\x80"));
}

TEST_CASE("ascii: hexadecimal numbers and names of code points") {
  CHECK(hexadecimal(0, 0).empty());
  CHECK(hexadecimal(0, 1) == "0");
  CHECK(hexadecimal(0xA, 2) == "0A");
  CHECK(hexadecimal(0x12345, 2) == "12345");
  CHECK(hexadecimal(0xFFFFFFFF, 4) == "FFFFFFFF");
  CHECK(code_point_name(U'\n') == "U+000A");
  CHECK(code_point_name(U'\u200b') == "U+200B");
  CHECK(code_point_name(U'\U0001F642') == "U+1F642");
}
