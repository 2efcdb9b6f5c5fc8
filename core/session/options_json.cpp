#include "core/session/options_json.h"

#include <algorithm>
#include <cmath>

#include "core/session/json_reader.h"

namespace qkv {

namespace {

constexpr std::string_view kOtherVariants[] = {"rope", "softcap", "alibi", "bias", "window", "sink"};

std::string option(std::string_view key) { return "option \"" + std::string(key) + "\""; }

std::optional<float> read_scale(JsonReader& reader, const JsonValue& value) {
  if (value.get_if<std::monostate>() != nullptr) return std::nullopt;
  const float* number = value.get_if<float>();
  if (number == nullptr) reader.fail(bad_input(option("scale") + " must be a finite number, or null for 1/√d_k"));
  return number != nullptr ? std::optional(*number) : std::nullopt;
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

Result<AttentionOptions> options_from_json(const JsonValue& json, const AttentionOptions& base) {
  JsonReader reader;
  const JsonValue::Members& members = reader.object(json, "the options");
  for (const JsonMember& member : members) {
    if (std::ranges::find(kOtherVariants, member.key) != std::end(kOtherVariants)) {
      return unsupported(option(member.key) + " is not supported by this version");
    }
  }
  reader.only_keys(members, {"scale", "causal", "align", "key_valid"}, "option", "");
  AttentionOptions options = base;
  if (const JsonValue* value = find_member(members, "scale")) options.scale = read_scale(reader, *value);
  if (const JsonValue* value = find_member(members, "causal")) {
    options.causal = reader.boolean(*value, option("causal"));
  }
  if (const JsonValue* value = find_member(members, "align")) {
    const bool top_left = reader.choice(*value, option("align"), {"bottom_right", "top_left"}) == 1;
    options.align = top_left ? CausalAlign::kTopLeft : CausalAlign::kBottomRight;
  }
  if (const JsonValue* value = find_member(members, "key_valid")) options.key_valid = read_key_valid(reader, *value);
  if (!reader.ok()) return reader.error();
  return options;
}

Result<AttentionOptions> parse_options(std::string_view json, const AttentionOptions& base) {
  const Result<JsonValue> value = parse_json(json);
  if (!value.ok()) return value.error();
  return options_from_json(value.value(), base);
}

}  // namespace qkv
