// The attention options of the command line: --options and a flag for each key.
#pragma once

#include "app/cli/common.h"

namespace qkv::cli {

// The words as given. A flag goes over --options, which goes over the file.
struct AttentionFlags {
  std::optional<std::string> options;  // JSON, or @file
  std::optional<std::string> rope, rope_base, scale, softcap, bias, align, window, key_valid, sink;
  bool alibi = false, causal = false;
  const CLI::Option *alibi_given = nullptr, *causal_given = nullptr;
};

// `with_scale` false where --scale is something else in the command (the picture's); --options sets the scale there.
void add_attention_flags(CLI::App& app, AttentionFlags& flags, bool with_scale = true);

// Sets the options of `session`. Errors: kUsage naming the flag; those of an options file or of a bias bear its name
// and are kBadInput, kUnsupported or kCannotRead.
Status apply_attention_flags(const AttentionFlags& flags, Session& session);

}  // namespace qkv::cli
