#include "core/session/json_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/utf8.h"

namespace qkv {

namespace {

std::string quoted(std::string_view text) {
  constexpr std::size_t kShown = 60;
  const std::string_view shown = utf8_prefix(text, kShown);
  return "\"" + std::string(shown) + (shown.size() < text.size() ? "…\"" : "\"");
}

// What is there, for a message: text in quotes, else the kind of value.
std::string seen(const JsonValue& value) {
  const std::string* text = value.get_if<std::string>();
  return text != nullptr ? quoted(*text) : std::string(kind_of(value));
}

std::string at(const std::string& place, std::size_t index) { return place + "[" + std::to_string(index) + "]"; }

// The number that a text stands for where JSON has none.
std::optional<float> special_number(const std::string& text) {
  if (text == "nan") return std::numeric_limits<float>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<float>::infinity();
  if (text == "-inf") return -std::numeric_limits<float>::infinity();
  return std::nullopt;
}

}  // namespace

std::string joined(const std::vector<std::string>& parts, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? last : ", ";
    text += parts[i];
  }
  return text;
}

const JsonValue::Members& JsonReader::object(const JsonValue& value, const std::string& place) {
  if (const auto* members = value.get_if<JsonValue::Members>()) return *members;
  fail(bad_input(place + " must be an object, but it is " + seen(value)));
  return no_members_;
}

void JsonReader::only_keys(const JsonValue::Members& members, std::initializer_list<std::string_view> keys,
                           std::string_view noun, const std::string& where) {
  for (const JsonMember& member : members) {
    if (std::ranges::find(keys, std::string_view(member.key)) != keys.end()) continue;
    const std::vector<std::string> allowed(keys.begin(), keys.end());
    fail(bad_input("unknown " + std::string(noun) + " " + quoted(member.key) + where + ": the " + std::string(noun) +
                   "s are " + joined(allowed, ", ")));
    return;
  }
}

const JsonValue* JsonReader::required(const JsonValue::Members& members, std::string_view key,
                                      const std::string& where) {
  const JsonValue* value = find_member(members, key);
  if (value == nullptr) fail(bad_input("the key \"" + std::string(key) + "\" is missing" + where));
  return value;
}

std::string JsonReader::text(const JsonValue& value, const std::string& place) {
  if (const std::string* text = value.get_if<std::string>()) return *text;
  fail(bad_input(place + " must be text, but it is " + seen(value)));
  return {};
}

bool JsonReader::boolean(const JsonValue& value, const std::string& place) {
  if (const bool* flag = value.get_if<bool>()) return *flag;
  fail(bad_input(place + " must be true or false, but it is " + seen(value)));
  return false;
}

int JsonReader::whole_number(const JsonValue& value, const std::string& place, int low, int high) {
  const float* number = value.get_if<float>();
  if (number != nullptr && *number == std::floor(*number) && *number >= static_cast<float>(low) &&
      *number <= static_cast<float>(high)) {
    return static_cast<int>(*number);
  }
  fail(bad_input(place + " must be a whole number from " + std::to_string(low) + " to " + std::to_string(high)));
  return low;
}

std::vector<std::string> JsonReader::texts(const JsonValue& value, const std::string& place) {
  std::vector<std::string> result;
  if (const auto* items = value.get_if<JsonValue::Items>()) {
    result.reserve(items->size());
    for (std::size_t i = 0; i < items->size() && ok(); ++i) {
      const std::string* text = (*items)[i].get_if<std::string>();
      if (text == nullptr) fail(bad_input(at(place, i) + " must be text, but it is " + seen((*items)[i])));
      result.push_back(text != nullptr ? *text : std::string());
    }
    return result;
  }
  const auto* numbers = value.get_if<JsonValue::Numbers>();
  if (numbers == nullptr) {
    fail(bad_input(place + " must be an array of texts, but it is " + seen(value)));
  } else if (!numbers->empty()) {
    fail(bad_input(at(place, 0) + " must be text, but it is a number"));
  }
  return result;
}

std::size_t JsonReader::choice(const JsonValue& value, const std::string& place,
                               std::initializer_list<std::string_view> choices) {
  if (const std::string* text = value.get_if<std::string>()) {
    const auto* found = std::ranges::find(choices, std::string_view(*text));
    if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  }
  std::vector<std::string> names;
  for (const std::string_view name : choices) names.push_back("\"" + std::string(name) + "\"");
  fail(bad_input(place + " must be " + joined(names, " or ") + ", but it is " + seen(value)));
  return 0;
}

// Numbers of an array, not yet looked at; nullopt and an error where it is empty or no array.
std::optional<Index> JsonReader::row_length(const JsonValue& value, const std::string& place) {
  Index length = -1;
  if (const auto* numbers = value.get_if<JsonValue::Numbers>()) length = static_cast<Index>(numbers->size());
  if (const auto* items = value.get_if<JsonValue::Items>()) length = static_cast<Index>(items->size());
  if (length > 0) return length;
  fail(bad_input(place + (length == 0 ? " is empty" : " must be an array, but it is " + seen(value))));
  return std::nullopt;
}

void JsonReader::copy_row(const JsonValue& value, const std::string& place, float* out) {
  if (const auto* numbers = value.get_if<JsonValue::Numbers>()) {
    std::ranges::copy(*numbers, out);
    return;
  }
  const auto* items = value.get_if<JsonValue::Items>();
  for (std::size_t i = 0; items != nullptr && i < items->size(); ++i) {
    const JsonValue& item = (*items)[i];
    const float* number = item.get_if<float>();
    const std::string* text = item.get_if<std::string>();
    const std::optional<float> special = text != nullptr ? special_number(*text) : std::nullopt;
    if (number == nullptr && !special) {
      fail(bad_input(at(place, i) + " must be a number, \"nan\", \"inf\" or \"-inf\", but it is " + seen(item)));
      return;
    }
    out[i] = number != nullptr ? *number : *special;
  }
}

Matrix JsonReader::row(const JsonValue& value, const std::string& place) {
  const std::optional<Index> length = row_length(value, place);
  if (!length) return {};
  Matrix result(1, *length);
  copy_row(value, place, result.data());
  return result;
}

Matrix JsonReader::matrix(const JsonValue& value, const std::string& place) {
  if (!row_length(value, place)) return {};
  const auto* rows = value.get_if<JsonValue::Items>();
  if (rows == nullptr) {
    fail(bad_input(at(place, 0) + " must be a row of numbers, but it is a number"));
    return {};
  }
  // Every length is checked before memory is taken for rows × columns.
  std::optional<Index> columns;
  for (std::size_t i = 0; i < rows->size(); ++i) {
    const std::optional<Index> length = row_length((*rows)[i], at(place, i));
    if (!length) return {};
    if (!columns) columns = length;
    if (*length == *columns) continue;
    fail(bad_input(at(place, i) + " has " + std::to_string(*length) + " numbers but " + at(place, 0) + " has " +
                   std::to_string(*columns)));
    return {};
  }
  Matrix result(static_cast<Index>(rows->size()), *columns);
  for (std::size_t i = 0; i < rows->size(); ++i) {
    copy_row((*rows)[i], at(place, i), result.data() + static_cast<Index>(i) * *columns);
    if (!ok()) return {};
  }
  return result;
}

std::vector<Matrix> JsonReader::matrices(const JsonValue& value, const std::string& place) {
  if (!row_length(value, place)) return {};
  const auto* heads = value.get_if<JsonValue::Items>();
  if (heads == nullptr) {
    fail(bad_input(at(place, 0) + " must be the rows of a head, but it is a number: " + place +
                   " is [heads][tokens][numbers]"));
    return {};
  }
  std::vector<Matrix> result;
  for (std::size_t h = 0; h < heads->size(); ++h) {
    result.push_back(matrix((*heads)[h], at(place, h)));
    if (!ok()) return {};
    const Matrix& first = result.front();
    const Matrix& last = result.back();
    if (last.rows() != first.rows()) {
      fail(bad_input(at(place, h) + " has " + std::to_string(last.rows()) + " rows but " + at(place, 0) + " has " +
                     std::to_string(first.rows())));
    } else if (last.cols() != first.cols()) {
      fail(bad_input(at(at(place, h), 0) + " has " + std::to_string(last.cols()) + " numbers but " +
                     at(at(place, 0), 0) + " has " + std::to_string(first.cols())));
    }
    if (!ok()) return {};
  }
  return result;
}

}  // namespace qkv
