// The keyboard of a virtual display. Separate from the rest: Xlib's names and macros are ours too.
#pragma once

#include <string>
#include <string_view>

namespace qkv::test {

// Both give the empty text, or what the display refuses.

// A key that is held down because xdotool got no processor time types its character once.
std::string stop_repeating_keys(const std::string& display);
// Gives each character a key of its own, for as long as the display lives. Without one xdotool lends it a spare key
// for a moment, and a program that is slower reads that key when it means nothing again.
std::string give_keys(const std::string& display, std::u32string_view characters);

}  // namespace qkv::test
