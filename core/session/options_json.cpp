#include "core/session/options_json.h"

#include <cmath>

#include "core/session/json_reader.h"

namespace qkv {

namespace {

std::string option(std::string_view key) { return "option \"" + std::string(key) + "\""; }

bool is_null(const JsonValue& value) { return value.get_if<std::monostate>() != nullptr; }

// A number or null; `what` continues "must be a finite number, or null for …".
std::optional<float> read_number(JsonReader& reader, const JsonValue& value, std::string_view key,
                                 const std::string& what) {
  if (is_null(value)) return std::nullopt;
  const float* number = value.get_if<float>();
  if (number == nullptr) reader.fail(bad_input(option(key) + " must be a finite number" + what));
  return number != nullptr ? std::optional(*number) : std::nullopt;
}

std::optional<Rope> read_rope(JsonReader& reader, const JsonValue& value) {
  if (is_null(value)) return std::nullopt;
  const JsonValue::Members& members = reader.object(value, option("rope"));
  reader.only_keys(members, {"base", "style"}, "key", " in rope");
  Rope rope;
  if (const JsonValue* style = reader.required(members, "style", " in rope")) {
    const bool half = reader.choice(*style, "rope.style", {"half", "interleaved"}) == 0;
    rope.style = half ? RopeStyle::kHalf : RopeStyle::kInterleaved;
  }
  if (const JsonValue* base = find_member(members, "base")) {
    const float* number = base->get_if<float>();
    if (number == nullptr || !(*number > 1)) reader.fail(bad_input("rope.base must be a finite number above 1"));
    if (number != nullptr) rope.base = *number;
  }
  return rope;
}

std::optional<float> read_softcap(JsonReader& reader, const JsonValue& value) {
  const std::string what = " above 0, or null for no cap";
  const std::optional<float> cap = read_number(reader, value, "softcap", what);
  if (cap && !(*cap > 0)) reader.fail(bad_input(option("softcap") + " must be a finite number" + what));
  return cap;
}

std::optional<SharedMatrix> read_bias(JsonReader& reader, const JsonValue& value, const MatrixReference& reference) {
  if (is_null(value)) return std::nullopt;
  if (reference && value.get_if<JsonValue::Members>() != nullptr) return reference(value, "bias");
  return SharedMatrix(reader.matrix(value, "bias"));
}

// Read as a number, not by whole_number(): "from 1 to 16777216" alone would not say what null does.
std::optional<Index> read_window(JsonReader& reader, const JsonValue& value) {
  if (is_null(value)) return std::nullopt;
  const float* number = value.get_if<float>();
  if (number == nullptr || *number != std::floor(*number) || *number < 1 || *number > static_cast<float>(kMaxWindow)) {
    reader.fail(bad_input(option("window") + " must be a whole number from 1 to " + std::to_string(kMaxWindow) +
                          ", or null for no window"));
    return std::nullopt;
  }
  return static_cast<Index>(*number);
}

std::vector<float> read_sink(JsonReader& reader, const JsonValue& value) {
  const auto* numbers = value.get_if<JsonValue::Numbers>();
  if (numbers == nullptr) reader.fail(bad_input(option("sink") + " must be an array of numbers, one for each head"));
  return numbers != nullptr ? *numbers : std::vector<float>();
}

// 0/1 or false/true for each key.
std::vector<std::uint8_t> read_key_valid(JsonReader& reader, const JsonValue& value) {
  std::vector<std::uint8_t> valid;
  const auto refuse = [&] {
    reader.fail(bad_input(option("key_valid") + " must be an array of 0 and 1, one for each key"));
  };
  const auto add = [&](const float* number, const bool* flag) {
    if (number != nullptr && *number != 0 && *number != 1) return refuse();
    if (number == nullptr && flag == nullptr) return refuse();
    valid.push_back(number != nullptr ? *number == 1 : *flag);
  };
  if (const auto* numbers = value.get_if<JsonValue::Numbers>()) {
    for (const float number : *numbers) add(&number, nullptr);
  } else if (const auto* items = value.get_if<JsonValue::Items>()) {
    for (const JsonValue& item : *items) add(item.get_if<float>(), item.get_if<bool>());
  } else {
    refuse();
  }
  return valid;
}

}  // namespace

Result<AttentionOptions> options_from_json(const JsonValue& json, const AttentionOptions& base,
                                           const MatrixReference& reference) {
  JsonReader reader;
  const JsonValue::Members& members = reader.object(json, "the options");
  reader.only_keys(members,
                   {"rope", "scale", "softcap", "alibi", "bias", "causal", "align", "window", "key_valid", "sink"},
                   "option", "");
  AttentionOptions options = base;
  const auto find = [&](std::string_view key) { return find_member(members, key); };
  if (const JsonValue* value = find("rope")) options.rope = read_rope(reader, *value);
  if (const JsonValue* value = find("scale")) {
    options.scale = read_number(reader, *value, "scale", ", or null for 1/√d_k");
  }
  if (const JsonValue* value = find("softcap")) options.softcap = read_softcap(reader, *value);
  if (const JsonValue* value = find("alibi")) options.alibi = reader.boolean(*value, option("alibi"));
  if (const JsonValue* value = find("bias")) options.bias = read_bias(reader, *value, reference);
  if (const JsonValue* value = find("causal")) options.causal = reader.boolean(*value, option("causal"));
  if (const JsonValue* value = find("align")) {
    const bool top_left = reader.choice(*value, option("align"), {"bottom_right", "top_left"}) == 1;
    options.align = top_left ? CausalAlign::kTopLeft : CausalAlign::kBottomRight;
  }
  if (const JsonValue* value = find("window")) options.window = read_window(reader, *value);
  if (const JsonValue* value = find("key_valid")) options.key_valid = read_key_valid(reader, *value);
  if (const JsonValue* value = find("sink")) options.sink = read_sink(reader, *value);
  if (!reader.ok()) return reader.error();
  return options;
}

Result<AttentionOptions> parse_options(std::string_view json, const AttentionOptions& base) {
  const Result<JsonValue> value = parse_json(json);
  if (!value.ok()) return value.error();
  return options_from_json(value.value(), base);
}

}  // namespace qkv
