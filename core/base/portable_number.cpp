#include "core/base/portable_number.h"

#include <charconv>
#include <cmath>

#include "core/base/number_text.h"

namespace qkv {

std::string portable_number(float value) {
  if (value == 0 && std::signbit(value)) return "-0.0";  // -0 is a whole number without a sign in Python
  std::string text = format_shortest(value);
  if (!std::isfinite(value)) return text;
  double wide = 0;
  std::from_chars(text.data(), text.data() + text.size(), wide);
  return static_cast<float>(wide) == value ? text : format_shortest(static_cast<double>(value));
}

std::string portable_number(double value) {
  if (value == 0 && std::signbit(value)) return "-0.0";
  return format_shortest(value);
}

}  // namespace qkv
