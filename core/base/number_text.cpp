#include "core/base/number_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "core/base/utf8.h"

namespace qkv {
namespace {

constexpr std::string_view kMinus = "\u2212";
constexpr double kScientificFrom = 1e6;

template <class T>
std::string shortest(T value) {
  if (std::isnan(value)) return "nan";  // to_chars writes the sign bit of a NaN
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), end};
}

// Digits of a finite value with a plain "-"; decimals are limited to what float64 can distinguish.
std::string digits_of(double value, int decimals, std::chars_format format) {
  std::array<char, 1500> buffer;  // 309 digits, a point, 1100 decimals
  const int precision = std::clamp(decimals, 0, 1100);
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format, precision).ptr;
  return {buffer.data(), end};
}

bool shows_only_zeros(std::string_view digits) { return digits.find_first_not_of("-0.") == std::string_view::npos; }

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  std::size_t pos = 0;
  for (std::size_t hit; (hit = text.find(from, pos)) != std::string_view::npos; pos = hit + from.size()) {
    out.append(text.substr(pos, hit - pos)).append(to);
  }
  return out.append(text.substr(pos));
}

std::string with_minus(std::string_view digits, bool typographic) {
  return typographic ? replace_all(digits, "-", kMinus) : std::string(digits);
}

std::string not_a_finite_number(double value, bool typographic) {
  if (std::isnan(value)) return "NaN";
  return value > 0 ? "∞" : with_minus("-∞", typographic);
}

std::string_view trim(std::string_view text) {
  std::size_t begin = text.size(), end = 0;
  for (std::size_t pos = 0; pos < text.size();) {
    const std::size_t start = pos;
    if (is_white_space(next_code_point(text, pos))) continue;
    begin = std::min(begin, start);
    end = pos;
  }
  return begin < end ? text.substr(begin, end - begin) : std::string_view{};
}

bool equal_ignoring_case(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b; });
}

// Text that from_chars finds out of range: what is too small rounds to 0, what is too large is no float32. Text
// that not even float64 can tell apart from 0 or infinity is refused too.
template <class T>
std::optional<T> round_out_of_range(std::string_view text) {
  double wide = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), wide);
  if (error == std::errc{} && std::abs(wide) < 1) return static_cast<T>(wide);
  return std::nullopt;
}

template <class T>
std::optional<T> parse_number(std::string_view text) {
  const std::string ascii = replace_all(trim(text), kMinus, "-");
  std::string_view unsigned_part = ascii;
  const bool negative = unsigned_part.starts_with('-');
  if (negative || unsigned_part.starts_with('+')) unsigned_part.remove_prefix(1);

  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  if (equal_ignoring_case(unsigned_part, "nan")) return std::numeric_limits<T>::quiet_NaN();
  if (equal_ignoring_case(unsigned_part, "inf")) return negative ? -kInfinity : kInfinity;
  // from_chars would take a second sign and the longer spellings of NaN and infinity.
  if (unsigned_part.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return std::nullopt;
  if (unsigned_part.starts_with('-') || unsigned_part.starts_with('+')) return std::nullopt;

  T value = 0;
  const char* last = unsigned_part.data() + unsigned_part.size();
  const auto [end, error] = std::from_chars(unsigned_part.data(), last, value);
  if (end != last || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    const std::optional<T> rounded = round_out_of_range<T>(unsigned_part);
    if (!rounded) return std::nullopt;
    value = *rounded;
  }
  return negative ? -value : value;
}

}  // namespace

std::string format_shortest(float value) { return shortest(value); }
std::string format_shortest(double value) { return shortest(value); }

std::string format_fixed(double value, int decimals, bool typographic) {
  if (!std::isfinite(value)) return not_a_finite_number(value, typographic);
  std::string digits = digits_of(value, decimals, std::chars_format::fixed);
  if (digits.front() == '-' && shows_only_zeros(digits)) digits.erase(0, 1);
  return with_minus(digits, typographic);
}

std::string format_value(double value, int decimals, bool typographic) {
  if (!std::isfinite(value)) return not_a_finite_number(value, typographic);
  const bool vanishes = value != 0 && shows_only_zeros(digits_of(value, decimals, std::chars_format::fixed));
  if (!vanishes && std::abs(value) < kScientificFrom) return format_fixed(value, decimals, typographic);
  return with_minus(digits_of(value, decimals, std::chars_format::scientific), typographic);
}

std::optional<float> parse_float(std::string_view text) { return parse_number<float>(text); }
std::optional<double> parse_double(std::string_view text) { return parse_number<double>(text); }

}  // namespace qkv
