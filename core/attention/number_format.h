// The formats that the numbers of a computation can be kept in.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace qkv {

enum class NumberFormat { kFloat64, kFloat32, kBfloat16, kFloat16 };
inline constexpr std::array kAllNumberFormats = {NumberFormat::kFloat64, NumberFormat::kFloat32,
                                                 NumberFormat::kBfloat16, NumberFormat::kFloat16};

// "float64", "float32", "bfloat16", "float16".
std::string_view format_name(NumberFormat format);
std::optional<NumberFormat> format_from_name(std::string_view name);

// The nearest number of the format, ties to even, beyond its range ±Inf; NaN stays. kFloat64 and kFloat32 keep all.
float round_to(NumberFormat format, float value);

// The distance between neighbours of the format at `value`: one unit in its last place. At 0 and among subnormals the
// smallest number. NaN for NaN and ±Inf.
double ulp_in(NumberFormat format, double value);

}  // namespace qkv
