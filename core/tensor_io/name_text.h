// Names that a file gives, fit for a message.
#pragma once

#include <string>
#include <string_view>

namespace qkv {

// On one line: control characters become "?".
std::string printable_name(std::string_view name);
// In quotes, printable, cut where it is very long.
std::string quoted_name(std::string_view name);

}  // namespace qkv
