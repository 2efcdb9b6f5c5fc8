#include "app/cli/attention_flags.h"

#include "core/session/options_json.h"
#include "core/session/session_tensors.h"
#include "core/tensor_io/tensor_file.h"

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

// "0,1,-2.5" as [H].
Result<std::vector<float>> parse_sink(std::string_view text) {
  std::vector<float> sink;
  while (true) {
    const std::size_t comma = text.find(',');
    const Result<float> number = parse_number("--sink", text.substr(0, comma));
    if (!number.ok()) return number.error();
    sink.push_back(number.value());
    if (comma == std::string_view::npos) return sink;
    text.remove_prefix(comma + 1);
  }
}

Status set_rope(const AttentionFlags& flags, AttentionOptions& options) {
  if (flags.rope) {
    if (*flags.rope == "none") {
      options.rope.reset();
    } else if (*flags.rope == "half" || *flags.rope == "interleaved") {
      if (!options.rope) options.rope = Rope{};
      options.rope->style = *flags.rope == "half" ? RopeStyle::kHalf : RopeStyle::kInterleaved;
    } else {
      return unknown_name("--rope", *flags.rope, {"half", "interleaved", "none"});
    }
  }
  if (!flags.rope_base) return Done{};
  if (!options.rope) return usage_error("--rope-base: there is no rope; add --rope half or --rope interleaved");
  const Result<float> base = parse_number("--rope-base", *flags.rope_base);
  if (!base.ok()) return base.error();
  options.rope->base = base.value();
  return Done{};
}

// What acts on scores before the mask.
Status set_scaling(const AttentionFlags& flags, AttentionOptions& options) {
  if (const Status rope = set_rope(flags, options); !rope.ok()) return rope;
  if (flags.scale) {
    const Result<float> scale = parse_number("--scale", *flags.scale);
    if (!scale.ok()) return scale.error();
    options.scale = scale.value();
  }
  if (flags.softcap) {
    const Result<float> softcap = parse_number("--softcap", *flags.softcap);
    if (!softcap.ok()) return softcap.error();
    options.softcap = softcap.value();
  }
  if (flags.alibi_given->count() > 0) options.alibi = flags.alibi;
  return Done{};
}

// "FILE" or "FILE:NAME": a file of that whole name goes first, since names may hold colons.
struct ArrayPlace {
  std::string path;
  std::optional<std::string> name;
};

ArrayPlace array_place(const std::string& words) {
  std::error_code problem;
  const std::size_t colon = words.rfind(':');
  if (colon == std::string::npos || colon == 0 || std::filesystem::exists(words, problem)) return {words, std::nullopt};
  return {words.substr(0, colon), words.substr(colon + 1)};
}

Result<std::string> array_name(const TensorFile& file, const ArrayPlace& place) {
  if (place.name) return *place.name;
  if (file.tensors().size() == 1) return file.tensors()[0].name;
  std::vector<std::string_view> names;
  for (const TensorInfo& array : file.tensors()) names.push_back(array.name);
  return usage_error("--bias: " + place.path + " holds " + std::to_string(names.size()) +
                     " arrays; add :NAME with one of " + name_list(names));
}

// A float array [Nq, Nk].
Result<SharedMatrix> read_bias(const std::string& words, const Shapes& shapes) {
  const ArrayPlace place = array_place(words);
  Result<MappedFile> content = map_input(place.path, place.path);
  if (!content.ok()) return content.error();
  const std::string stem = std::filesystem::path(place.path).stem().string();
  const Result<TensorFile> file = TensorFile::from_file(std::move(content).value(), stem);
  if (!file.ok()) return located(place.path, file.error());
  const Result<std::string> name = array_name(file.value(), place);
  if (!name.ok()) return name.error();
  const Result<Tensor> tensor = file.value().read(name.value());
  if (!tensor.ok()) return located(place.path, tensor.error());
  Result<SharedMatrix> bias = matrix_from_tensor(tensor.value(), name.value());
  if (!bias.ok()) return located(place.path, bias.error());
  const auto size = [](Index rows, Index cols) { return std::to_string(rows) + "×" + std::to_string(cols); };
  if (bias.value().rows() == shapes.nq && bias.value().cols() == shapes.nk) return bias;
  return located(place.path,
                 bad_input("\"" + name.value() + "\" is " + size(bias.value().rows(), bias.value().cols()) +
                           " but there are " + std::to_string(shapes.nq) + " queries and " + std::to_string(shapes.nk) +
                           " keys: a bias needs to be " + size(shapes.nq, shapes.nk)));
}

Status set_bias(const AttentionFlags& flags, const Session& session, AttentionOptions& options) {
  if (!flags.bias) return Done{};
  options.bias.reset();
  if (*flags.bias == "none") return Done{};
  const Result<Shapes> shapes = check_session(session);
  if (!shapes.ok()) return shapes.error();
  const Result<SharedMatrix> bias = read_bias(*flags.bias, shapes.value());
  if (!bias.ok()) return bias.error();
  options.bias = bias.value();
  return Done{};
}

// Which keys a query sees, and the sink.
Status set_masks(const AttentionFlags& flags, AttentionOptions& options) {
  if (flags.causal_given->count() > 0) options.causal = flags.causal;
  if (flags.align) {
    if (*flags.align != "bottom_right" && *flags.align != "top_left") {
      return unknown_name("--align", *flags.align, {"bottom_right", "top_left"});
    }
    options.align = *flags.align == "top_left" ? CausalAlign::kTopLeft : CausalAlign::kBottomRight;
  }
  if (flags.window) {
    const Result<int> window = parse_int("--window", *flags.window, 1, static_cast<int>(kMaxWindow));
    if (!window.ok()) return window.error();
    options.window = window.value();
  }
  if (flags.key_valid) {
    const Result<std::vector<std::uint8_t>> valid = parse_key_valid(*flags.key_valid);
    if (!valid.ok()) return valid.error();
    options.key_valid = valid.value();
  }
  if (flags.sink) {
    const Result<std::vector<float>> sink = parse_sink(*flags.sink);
    if (!sink.ok()) return sink.error();
    options.sink = sink.value();
  }
  return Done{};
}

}  // namespace

void add_attention_flags(CLI::App& app, AttentionFlags& flags, bool with_scale) {
  add_text(app, "--options", flags.options, "JSON|@FILE",
           "Attention options as in a session file, over what FILE says: '{\"causal\":true}'");
  add_text(app, "--rope", flags.rope, "STYLE",
           "Rotate q and k by position: half (x_i with x_i+d/2, as Llama), interleaved (x_2i with x_2i+1, as GPT-J), "
           "none");
  add_text(app, "--rope-base", flags.rope_base, "X", "The base of the rotation's angles (default: 10000)");
  if (with_scale) add_text(app, "--scale", flags.scale, "X", "What QKᵀ is multiplied by (default: 1/√d_k)");
  add_text(app, "--softcap", flags.softcap, "X", "Bound scaled scores smoothly: X·tanh(s/X)");
  flags.alibi_given = app.add_flag("--alibi,!--no-alibi", flags.alibi, "Subtract slope·|i−j|, a slope for each head");
  add_text(app, "--bias", flags.bias, "FILE[:NAME]",
           "Add an array [queries, keys] to the scores of every head: a tensor file, NAME where it has several; none");
  flags.causal_given = app.add_flag("--causal,!--no-causal", flags.causal, "Each query sees the keys up to its own");
  add_text(app, "--align", flags.align, "CORNER",
           "Where the causal diagonal ends if queries and keys differ in number: bottom_right (default), top_left");
  add_text(app, "--window", flags.window, "N", "See only keys nearer than N, on both sides unless causal");
  add_text(app, "--key-valid", flags.key_valid, "1,1,0", "For each key 1, or 0 to hide it from every query");
  add_text(app, "--sink", flags.sink, "0,1,-2,5", "For each head a logit that joins the softmax denominator alone");
}

Status apply_attention_flags(const AttentionFlags& flags, Session& session) {
  AttentionOptions options = session.problem.options;
  if (flags.options) {
    const Result<AttentionOptions> given = options_over(*flags.options, options);
    if (!given.ok()) return given.error();
    options = given.value();
  }
  if (const Status set = set_scaling(flags, options); !set.ok()) return set;
  if (const Status set = set_bias(flags, session, options); !set.ok()) return set;
  if (const Status set = set_masks(flags, options); !set.ok()) return set;
  if (options == session.problem.options) return Done{};

  session.problem.options = options;
  const Result<Shapes> shapes = check_session(session);
  if (!shapes.ok()) return as_usage("attention options", shapes.error());
  return Done{};
}

}  // namespace qkv::cli
