#include "core/attention/number_format.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/half_float.h"

namespace qkv {
namespace {

struct FormatInfo {
  std::string_view name;
  int precision;     // bits, the leading one among them
  int min_exponent;  // of the smallest normal number, 2^min_exponent
};

// In the order of NumberFormat.
constexpr std::array kInfos = {FormatInfo{"float64", 53, -1022}, FormatInfo{"float32", 24, -126},
                               FormatInfo{"bfloat16", 8, -126}, FormatInfo{"float16", 11, -14}};
static_assert(kInfos.size() == kAllNumberFormats.size());

const FormatInfo& info(NumberFormat format) { return kInfos[static_cast<std::size_t>(format)]; }

}  // namespace

std::string_view format_name(NumberFormat format) { return info(format).name; }

std::optional<NumberFormat> format_from_name(std::string_view name) {
  for (const NumberFormat format : kAllNumberFormats) {
    if (format_name(format) == name) return format;
  }
  return std::nullopt;
}

float round_to(NumberFormat format, float value) {
  switch (format) {
    case NumberFormat::kBfloat16:
      return from_bfloat16(to_bfloat16(value));
    case NumberFormat::kFloat16:
      return from_float16(to_float16(value));
    case NumberFormat::kFloat64:
    case NumberFormat::kFloat32:
      break;
  }
  return value;
}

double ulp_in(NumberFormat format, double value) {
  if (!std::isfinite(value)) return std::numeric_limits<double>::quiet_NaN();
  const auto& [name, precision, min_exponent] = info(format);
  const int exponent = value == 0 ? min_exponent : std::max(std::ilogb(value), min_exponent);
  return std::ldexp(1.0, exponent - precision + 1);
}

}  // namespace qkv
