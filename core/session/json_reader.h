// Typed reading of a JSON document: what is asked for, or the first error, named by place.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/attention/matrix.h"
#include "core/session/json_value.h"

namespace qkv {

// Keeps the first error; after one, readings give defaults. So a caller reads everything and looks once.
// `place` is what the message calls the value ("view.tab").
class JsonReader {
 public:
  bool ok() const { return !error_.has_value(); }
  const Error& error() const { return *error_; }
  void fail(Error error) {
    if (error_) return;
    error_ = std::move(error);
    error_->message = one_line(std::move(error_->message));
  }

  // The members of an object; no members where it is none.
  const JsonValue::Members& object(const JsonValue& value, const std::string& place);
  // Refuses every key that is not one of `keys`: "unknown key "a" in view: the keys are tab, head".
  // `noun` is what a key is called; `where` is empty or starts with a space (" in view").
  void only_keys(const JsonValue::Members& members, std::initializer_list<std::string_view> keys, std::string_view noun,
                 const std::string& where);
  // The member, or nullptr with the error that it is missing.
  const JsonValue* required(const JsonValue::Members& members, std::string_view key, const std::string& where);

  std::string text(const JsonValue& value, const std::string& place);
  bool boolean(const JsonValue& value, const std::string& place);
  int whole_number(const JsonValue& value, const std::string& place, int low, int high);
  std::vector<std::string> texts(const JsonValue& value, const std::string& place);
  // The index of the text among `choices`.
  std::size_t choice(const JsonValue& value, const std::string& place, std::initializer_list<std::string_view> choices);

  // [n]: one row. [rows][cols] and [heads][rows][cols]: all lengths equal and none 0.
  // Numbers, or the texts "nan", "inf", "-inf".
  Matrix row(const JsonValue& value, const std::string& place);
  Matrix matrix(const JsonValue& value, const std::string& place);
  std::vector<Matrix> matrices(const JsonValue& value, const std::string& place);

 private:
  std::optional<Index> row_length(const JsonValue& value, const std::string& place);
  void copy_row(const JsonValue& value, const std::string& place, float* out);

  std::optional<Error> error_;
  JsonValue::Members no_members_;  // what object() gives where there is none
};

// "a, b and c".
std::string joined(const std::vector<std::string>& parts, std::string_view last = " and ");

}  // namespace qkv
