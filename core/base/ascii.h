// ASCII in UTF-8 text: the same under every locale.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace qkv {

bool is_ascii(std::string_view text);

// A … Z become a … z; all else stays.
std::string lower_ascii(std::string_view text);

// In capitals, with zeros before it up to `least_digits`: "0A".
std::string hexadecimal(std::uint32_t number, std::size_t least_digits);
// "U+200B".
std::string code_point_name(char32_t code_point);

}  // namespace qkv
