#include "app/cli/attention_flags.h"

#include "core/session/options_json.h"

namespace qkv::cli {
namespace {

Error as_usage(std::string_view flag, const Error& error) {
  return located(flag, {ErrorCode::kUsage, error.message, error.offset});
}

Result<AttentionOptions> options_over(const std::string& words, const AttentionOptions& base) {
  if (words[0] != '@') {
    Result<AttentionOptions> options = parse_options(words, base);
    if (!options.ok()) return as_usage("--options", options.error());
    return options;
  }
  const std::string path = words.substr(1);
  const Result<Bytes> content = read_input(path, path);
  if (!content.ok()) return content.error();
  Result<AttentionOptions> options = parse_options(as_text(content.value()), base);
  if (!options.ok()) return located(path, options.error());
  return options;
}

// "1,1,0" as [Nk].
Result<std::vector<std::uint8_t>> parse_key_valid(std::string_view text) {
  std::vector<std::uint8_t> valid;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_digit_place = i % 2 == 0;
    const bool fits = is_digit_place ? text[i] == '0' || text[i] == '1' : text[i] == ',';
    if (!fits || (!is_digit_place && i + 1 == text.size())) {
      return usage_error("--key-valid: \"" + std::string(text) +
                         "\" is not a list of 1 (seen) and 0 (hidden), one "
                         "for each key, such as 1,1,0");
    }
    if (is_digit_place) valid.push_back(text[i] == '1' ? 1 : 0);
  }
  return valid;
}

}  // namespace

void add_attention_flags(CLI::App& app, AttentionFlags& flags, bool with_scale) {
  add_text(app, "--options", flags.options, "JSON|@FILE",
           "Attention options as in a session file, over what FILE says: '{\"causal\":true}'");
  flags.causal_given = app.add_flag("--causal,!--no-causal", flags.causal, "Each query sees the keys up to its own");
  add_text(app, "--align", flags.align, "CORNER",
           "Where the causal diagonal ends if queries and keys differ in number: bottom_right (default), top_left");
  if (with_scale) add_text(app, "--scale", flags.scale, "X", "What QKᵀ is multiplied by (default: 1/√d_k)");
  add_text(app, "--key-valid", flags.key_valid, "1,1,0", "For each key 1, or 0 to hide it from every query");
}

Status apply_attention_flags(const AttentionFlags& flags, Session& session) {
  AttentionOptions options = session.problem.options;
  if (flags.options) {
    const Result<AttentionOptions> given = options_over(*flags.options, options);
    if (!given.ok()) return given.error();
    options = given.value();
  }
  if (flags.causal_given->count() > 0) options.causal = flags.causal;
  if (flags.align) {
    if (*flags.align != "bottom_right" && *flags.align != "top_left") {
      return unknown_name("--align", *flags.align, {"bottom_right", "top_left"});
    }
    options.align = *flags.align == "top_left" ? CausalAlign::kTopLeft : CausalAlign::kBottomRight;
  }
  if (flags.scale) {
    const Result<float> scale = parse_number("--scale", *flags.scale);
    if (!scale.ok()) return scale.error();
    options.scale = scale.value();
  }
  if (flags.key_valid) {
    const Result<std::vector<std::uint8_t>> valid = parse_key_valid(*flags.key_valid);
    if (!valid.ok()) return valid.error();
    options.key_valid = valid.value();
  }
  if (options == session.problem.options) return Done{};

  session.problem.options = options;
  const Result<Shapes> shapes = check_session(session);
  if (!shapes.ok()) return as_usage("attention options", shapes.error());
  return Done{};
}

}  // namespace qkv::cli
