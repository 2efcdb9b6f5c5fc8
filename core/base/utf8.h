// UTF-8 text: validity, code points, and the character classes that tokenizing needs.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace qkv {

// Code point at `pos`, which moves past it. Invalid bytes give U+FFFD and move by one.
char32_t next_code_point(std::string_view text, std::size_t& pos);
std::size_t count_code_points(std::string_view text);
void append_utf8(std::string& out, char32_t code_point);
bool is_valid_utf8(std::string_view text);
// The same text with each invalid byte replaced by U+FFFD.
std::string sanitize_utf8(std::string_view text);
// Without the U+FEFF that some programs write first.
std::string_view without_byte_order_mark(std::string_view text);
// The start of the text, of at most so many bytes, that cuts no character.
std::string_view utf8_prefix(std::string_view text, std::size_t most_bytes);

bool is_white_space(char32_t code_point);  // Unicode White_Space
bool is_cjk(char32_t code_point);          // Han, kana, Hangul syllables, bopomofo
bool joins_previous(char32_t code_point);  // combining marks, variation selectors, ZWJ, skin tones

}  // namespace qkv
