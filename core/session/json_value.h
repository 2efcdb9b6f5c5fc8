// A parsed JSON document, with the limits that a file from elsewhere needs.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/read_progress.h"
#include "core/base/result.h"

namespace qkv {

struct JsonMember;

// Numbers are float32, rounded once from their text. An array of numbers alone (also an empty one) is
// Numbers: four bytes each instead of a JsonValue.
struct JsonValue {
  using Numbers = std::vector<float>;
  using Items = std::vector<JsonValue>;
  using Members = std::vector<JsonMember>;  // in the order of the text, keys unique

  std::variant<std::monostate, bool, float, std::string, Numbers, Items, Members> data;

  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&data);
  }
};

struct JsonMember {
  std::string key;
  JsonValue value;
};

// The value of `key`, or nullptr.
const JsonValue* find_member(const JsonValue::Members& members, std::string_view key);

// "null", "true or false", "a number", "text", "an array", "an object", for messages.
std::string_view kind_of(const JsonValue& value);

// A message that quotes a document, fit for one line: no control characters, not endless.
std::string one_line(std::string message);

inline constexpr std::size_t kMaxJsonDepth = 64;
inline constexpr std::size_t kMaxJsonMembers = 64;  // of one object

// Errors: kBadInput with line and column for broken syntax (invalid UTF-8 too); with the place ("source.q[0][1]")
// for a key that comes twice, a number beyond float32's range, and nesting or objects beyond the limits.
// `progress` expects and counts the text, and may end it with kCancelled.
Result<JsonValue> parse_json(std::string_view text, ReadProgress* progress = nullptr);

}  // namespace qkv
