// Attention options as JSON: the "attention" object of a session file and `--options` of the command line.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/attention/options.h"
#include "core/base/result.h"

namespace qkv {

// Reads `json` over `base`: keys that are absent keep base's value, null takes rope, scale, softcap, bias or window
// away. An unknown key, a wrong type or a value out of range is kBadInput naming the key and what is allowed. What
// depends on shapes (d_k, lengths) is for check_shapes.
Result<AttentionOptions> parse_options(std::string_view json, const AttentionOptions& base = {});

struct JsonValue;
// Reads a matrix that a file names as an object, {"file": …, "name": …}. Keeps its own errors.
using MatrixReference = std::function<SharedMatrix(const JsonValue& value, const std::string& place)>;

// The same for a document that is parsed already. Without `reference`, the bias has to be rows of numbers.
Result<AttentionOptions> options_from_json(const JsonValue& json, const AttentionOptions& base = {},
                                           const MatrixReference& reference = {});

}  // namespace qkv
