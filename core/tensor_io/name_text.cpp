#include "core/tensor_io/name_text.h"

#include "core/base/utf8.h"

namespace qkv {

std::string printable_name(std::string_view name) {
  std::string out = sanitize_utf8(name);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return out;
}

std::string quoted_name(std::string_view name) {
  constexpr std::size_t kMost = 120;  // bytes
  std::size_t end = name.size();
  if (end > kMost) {
    end = kMost;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;  // to the start of a character
  }
  return "\"" + printable_name(name.substr(0, end)) + (end < name.size() ? "…\"" : "\"");
}

}  // namespace qkv
