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
  const std::string_view shown = utf8_prefix(name, kMost);
  return "\"" + printable_name(shown) + (shown.size() < name.size() ? "…\"" : "\"");
}

}  // namespace qkv
