#include "core/base/utf8.h"

#include <doctest/doctest.h>

#include <string>

using namespace qkv;

TEST_SUITE("utf8") {
  TEST_CASE("every code point round trips and is valid") {
    for (char32_t c = 0; c <= 0x10FFFF; ++c) {
      if (c == 0xD800) c = 0xE000;
      std::string text;
      append_utf8(text, c);
      std::size_t pos = 0;
      REQUIRE(next_code_point(text, pos) == c);
      REQUIRE(pos == text.size());
      REQUIRE(is_valid_utf8(text));
    }
    std::string text;
    append_utf8(text, 0xD800);
    append_utf8(text, 0x110000);
    CHECK(text == "\uFFFD\uFFFD");
  }

  TEST_CASE("invalid bytes become one U+FFFD each") {
    struct Case {
      std::string bytes;
      std::string clean;
    };
    const Case cases[] = {
        {"\x80", "\uFFFD"},
        {"a\xC3", "a\uFFFD"},
        {"\xC0\xAF", "\uFFFD\uFFFD"},                      // overlong "/"
        {"\xE0\x80\xAF", "\uFFFD\uFFFD\uFFFD"},            // overlong
        {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},            // surrogate
        {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},  // above U+10FFFF
        {"\xF0\x82\x82\xAC", "\uFFFD\uFFFD\uFFFD\uFFFD"},  // overlong
        {"\xE8\xB2x", "\uFFFD\uFFFDx"},                    // cut short, then text
        {"\xFF\xE8\xB2\x93", "\uFFFD\xE8\xB2\x93"},
    };
    for (const Case& c : cases) {
      CHECK(!is_valid_utf8(c.bytes));
      CHECK(sanitize_utf8(c.bytes) == c.clean);
      CHECK(is_valid_utf8(sanitize_utf8(c.bytes)));
    }
    CHECK(is_valid_utf8("貓 追 老鼠 \uFFFD"));
    CHECK(sanitize_utf8("貓 追 老鼠 \uFFFD") == "貓 追 老鼠 \uFFFD");
    CHECK(is_valid_utf8(""));
    std::size_t pos = 0;
    CHECK(next_code_point("", pos) == 0xFFFD);
    CHECK(pos == 0);
  }

  TEST_CASE("character classes") {
    for (const char32_t c : U" \t\n\r\u0085\u00a0\u2009\u2028\u202f\u3000") {
      if (c) CHECK(is_white_space(c));
    }
    for (const char32_t c : U"a_\u200b\u200d\ufeff\u2060貓") CHECK(!is_white_space(c));
    for (const char32_t c : U"貓追老鼠々〇ひらカター한ㄅㆠ𠀀𫝀") {
      if (c) CHECK_MESSAGE(is_cjk(c), static_cast<unsigned>(c));
    }
    for (const char32_t c : U"aé。、・ж🙂ᄀ\u3099Ａ１") CHECK_MESSAGE(!is_cjk(c), static_cast<unsigned>(c));
    for (const char32_t c : U"\u0301\u0308\ufe0f\u200d\U0001F3FD\u3099\u093f\u20e3\U000E0101") {
      if (c) CHECK_MESSAGE(joins_previous(c), static_cast<unsigned>(c));
    }
    for (const char32_t c : U"aé貓🙂 \u200b") CHECK_MESSAGE(!joins_previous(c), static_cast<unsigned>(c));
  }

  TEST_CASE("a text is shortened between characters") {
    for (std::size_t most = 0; most < 12; ++most) {
      const std::string_view start = utf8_prefix("a貓é🙂", most);
      CHECK(start.size() <= most);
      CHECK(std::string_view("a貓é🙂").starts_with(start));
      CHECK(is_valid_utf8(start));
    }
    CHECK(utf8_prefix("a貓", 3) == "a");
    CHECK(utf8_prefix("a貓", 4) == "a貓");
    CHECK(utf8_prefix("\x80\x80", 1).empty());
    CHECK(utf8_prefix("", 0).empty());
  }

  TEST_CASE("a byte order mark is left out once, and only at the start") {
    CHECK(without_byte_order_mark("\ufeffa") == "a");
    CHECK(without_byte_order_mark("\ufeff\ufeff") == "\ufeff");
    CHECK(without_byte_order_mark("a\ufeff") == "a\ufeff");
    CHECK(without_byte_order_mark("").empty());
  }
}
