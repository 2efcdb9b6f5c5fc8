// What a number depends on and what a number format does, on the command line: --gradient and --precision.
#pragma once

#include "app/cli/common.h"
#include "core/attention/gradient.h"
#include "core/attention/number_format.h"

namespace qkv::cli {

// "sum-of-squares", "out:ROW:COL", "concat:ROW:COL", "attn:HEAD:ROW:COL" and so on, counted from 0 as in the arrays.
// kUsage that names `flag` and what is allowed; whether there is such a cell gradient() says.
Result<GradientTarget> parse_target(std::string_view flag, std::string_view text);

// "values", "gradient", "float32", "bfloat16", "float16", of --lens.
Result<Lens> parse_lens(std::string_view text);
// Why a session of weights alone has no `lens`.
Error lens_needs_inputs(const std::string& lens);

// "float64", "float32", "bfloat16", "float16".
Result<NumberFormat> parse_format(std::string_view flag, std::string_view text);

}  // namespace qkv::cli
