// Literals and comments of Python.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace qkv {

// A literal in double quotes that Python reads back to the same text; invalid UTF-8 becomes U+FFFD.
std::string python_string(std::string_view text);

// A float32 as the float64 that it is: "0.5", "0.10000000149011612".
std::string python_scalar(float value);

// `text` for what is left of a comment's line: at most `most` characters, and none that ends the line or that hides or
// reorders what stands there.
std::string comment_text(std::string_view text, std::size_t most = 60);

}  // namespace qkv
