// Attention options as JSON: the "attention" object of a session file and `--options` of the command line.
#pragma once

#include <string_view>

#include "core/attention/options.h"
#include "core/base/result.h"

namespace qkv {

// Reads `json` over `base`: keys that are absent keep base's value. An unknown key, a wrong type or a value out
// of range is kBadInput naming the key and what is allowed; keys of other variants (rope, softcap, alibi, bias,
// window, sink) are kUnsupported by name.
Result<AttentionOptions> parse_options(std::string_view json, const AttentionOptions& base = {});

struct JsonValue;
// The same for a document that is parsed already.
Result<AttentionOptions> options_from_json(const JsonValue& json, const AttentionOptions& base = {});

}  // namespace qkv
