#include "core/session/python_text.h"

#include "core/base/ascii.h"
#include "core/base/portable_number.h"
#include "core/base/utf8.h"

namespace qkv {
namespace {

// Controls, separators of lines, and characters that hide or turn around what stands beside them.
bool is_treacherous(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x61c || c == 0x200e || c == 0x200f ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

// "\n", "\x1b", "\u202e".
std::string escaped(char32_t c) {
  if (c == U'\n') return "\\n";
  if (c == U'\t') return "\\t";
  return c < 0x100 ? "\\x" + lower_ascii(hexadecimal(c, 2)) : "\\u" + lower_ascii(hexadecimal(c, 4));
}

}  // namespace

std::string python_string(std::string_view text) {
  std::string literal = "\"";
  for (std::size_t pos = 0; pos < text.size();) {
    const char32_t c = next_code_point(text, pos);
    if (c == U'"' || c == U'\\') {
      literal += '\\';
      literal += static_cast<char>(c);
    } else if (is_treacherous(c)) {
      literal += escaped(c);
    } else {
      append_utf8(literal, c);
    }
  }
  return literal + "\"";
}

std::string python_scalar(float value) { return portable_number(static_cast<double>(value)); }

std::string comment_text(std::string_view text, std::size_t most) {
  std::string line;
  std::size_t count = 0;
  for (std::size_t pos = 0; pos < text.size(); ++count) {
    if (count == most) return line + "…";
    const char32_t c = next_code_point(text, pos);
    if (is_treacherous(c)) {
      line += escaped(c);
    } else {
      append_utf8(line, c);
    }
  }
  return line;
}

}  // namespace qkv
