#include "core/base/ascii.h"

#include <algorithm>

namespace qkv {

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::string lower_ascii(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

std::string hexadecimal(std::uint32_t number, std::size_t least_digits) {
  std::string digits;
  for (; number != 0 || digits.size() < least_digits; number >>= 4) digits += "0123456789ABCDEF"[number & 0xF];
  std::ranges::reverse(digits);
  return digits;
}

std::string code_point_name(char32_t code_point) { return "U+" + hexadecimal(code_point, 4); }

}  // namespace qkv
