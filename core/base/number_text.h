// Numbers to text and back, the same under every locale.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace qkv {

// Shortest decimal text that reads back to the same float32 ("0.1", "1e+30", "nan", "-inf").
std::string format_shortest(float value);
// Shortest decimal text that reads back to the same float64.
std::string format_shortest(double value);

// `decimals` digits after the point, "−" (U+2212) for negative values when `typographic`;
// a value that rounds to zero has no sign. "NaN", "∞" and "−∞" for the values that are no numbers.
std::string format_fixed(double value, int decimals, bool typographic = true);

// For a person: fixed while that shows the digits, scientific ("1.23e+08") for values from 1e6 up
// or that would show only zeros. `decimals` counts the digits after the point.
std::string format_value(double value, int decimals, bool typographic = true);

// One number and nothing else, white space around it allowed: "1", "-2.5e3", "+4", ".5", "−1" (U+2212),
// "nan", "inf", "-inf". Decimal point only. nullopt for anything else, and for finite text beyond
// float32's range; text too small for float32 is 0.
std::optional<float> parse_float(std::string_view text);
// The same with float64's range and precision; text too small for float64 is refused.
std::optional<double> parse_double(std::string_view text);

}  // namespace qkv
