#include "core/session/json_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/utf8.h"

namespace qkv {

namespace {

// The float32 nearest to the text of a JSON number, or nullopt beyond float32's range. `approximate` is the
// parser's float64, which says whether a text out of range is too large or too small.
std::optional<float> nearest_float(std::string text, double approximate) {
  for (char& c : text) {
    if (std::string_view("0123456789+-eE").find(c) == std::string_view::npos) c = '.';  // the locale's decimal point
  }
  float value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) {
    if (std::isinf(value)) return std::nullopt;
    return value;
  }
  if (std::abs(approximate) < std::numeric_limits<float>::min()) return std::copysign(0.0f, approximate < 0 ? -1 : 1);
  return std::nullopt;
}

// "line 3, column 5": columns count characters.
std::string line_and_column(std::string_view text, std::size_t offset) {
  text = text.substr(0, offset);
  const auto line = 1 + std::ranges::count(text, '\n');
  text.remove_prefix(text.rfind('\n') + 1);  // npos + 1 = 0
  const auto starts_character = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
  const auto column = 1 + std::ranges::count_if(text, starts_character);
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

// What the parser says about the error, without its own positions and the text it last read.
std::string syntax_detail(std::string_view what) {
  const std::size_t column = what.find("column ");
  const std::size_t begin = column == std::string_view::npos ? column : what.find(": ", column);
  std::string detail(begin == std::string_view::npos ? what : what.substr(begin + 2));
  const std::size_t last_read = detail.find("; last read: ");
  if (last_read != std::string::npos) {
    const std::size_t expected = detail.rfind("; expected ");
    detail.erase(last_read, expected == std::string::npos || expected < last_read ? expected : expected - last_read);
  }
  return sanitize_utf8(detail);
}

// The characters of a text on their way into the parser, counted a step at a time.
class CountedText {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountedText(const char* at, const char* end, ReadProgress* progress) : at_(at), end_(end), progress_(progress) {
    begin_step();
  }

  const char& operator*() const { return *at_; }
  CountedText& operator++() {
    if (++at_ == step_end_) end_step();
    return *this;
  }
  CountedText operator++(int) {
    const CountedText before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountedText& other) const { return at_ == other.at_; }

 private:
  void begin_step() {
    step_ = std::min(static_cast<std::size_t>(kReadStep), static_cast<std::size_t>(end_ - at_));
    step_end_ = at_ + step_;
  }
  void end_step() {
    if (progress_ != nullptr) progress_->add(step_);
    begin_step();
  }

  const char* at_;
  const char* end_;
  const char* step_end_ = nullptr;
  std::size_t step_ = 0;
  ReadProgress* progress_;
};

// Builds the document from the parser's events; the first thing that breaks a rule stops it.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(std::string_view text, ReadProgress* progress) : text_(text), progress_(progress) {}

  JsonValue& root() { return root_; }
  const std::optional<Error>& error() const { return error_; }

  bool null() override { return add({}); }
  bool boolean(bool value) override { return add({value}); }
  bool number_integer(std::int64_t value) override { return add_number(static_cast<float>(value)); }
  bool number_unsigned(std::uint64_t value) override { return add_number(static_cast<float>(value)); }
  bool number_float(double value, const std::string& text) override {
    const std::optional<float> nearest = nearest_float(text, value);
    return nearest ? add_number(*nearest) : fail(place() + " is beyond float32's range");
  }
  bool string(std::string& value) override { return add({std::move(value)}); }
  bool binary(nlohmann::json::binary_t&) override { return fail("binary values are not JSON"); }

  bool start_object(std::size_t) override { return open(JsonValue{JsonValue::Members()}); }
  bool start_array(std::size_t) override { return open(JsonValue{JsonValue::Numbers()}); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    auto& members = std::get<JsonValue::Members>(open_.back().data);
    if (find_member(members, name) != nullptr) return fail("the key \"" + name + "\" comes twice" + inside());
    if (members.size() == kMaxJsonMembers)
      return fail("more than 64 keys in one object" + inside() + ", which no qkvlab session has: open another file");
    members.push_back({std::move(name), {}});
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& exception) override {
    constexpr int kNumberOverflow = 406;
    if (exception.id == kNumberOverflow) return fail(place() + " is beyond float32's range");
    const std::size_t offset = std::min(position > 0 ? position - 1 : 0, text_.size());
    fail(line_and_column(text_, offset) + ": not valid JSON: " + syntax_detail(exception.what()));
    error_->offset = offset;
    return false;
  }

 private:
  bool fail(std::string message) {
    if (!error_) error_ = bad_input(one_line(std::move(message)));
    return false;
  }

  // Where the next value goes: "source.q[0][1]".
  std::string place() const {
    std::string path;
    for (const JsonValue& value : open_) {
      if (const auto* members = value.get_if<JsonValue::Members>()) {
        if (!members->empty()) path += (path.empty() ? "" : ".") + members->back().key;
      } else {
        const auto* items = value.get_if<JsonValue::Items>();
        const auto* numbers = value.get_if<JsonValue::Numbers>();
        path += "[" + std::to_string(items ? items->size() : numbers->size()) + "]";
      }
    }
    return path.empty() ? "the value" : path;
  }
  // " in source" within the innermost object, nothing at the top.
  std::string inside() {
    const JsonValue innermost = std::move(open_.back());
    open_.pop_back();
    return open_.empty() ? "" : " in " + place();
  }

  bool open(JsonValue value) {
    if (open_.size() == kMaxJsonDepth) return fail("nested more than 64 deep");
    open_.push_back(std::move(value));
    return true;
  }

  bool close() {
    JsonValue value = std::move(open_.back());
    open_.pop_back();
    return add(std::move(value));
  }

  // The parser is stopped by what it gives next.
  bool goes_on() {
    const Status on = count_read(progress_, 0);
    if (!on.ok() && !error_) error_ = on.error();
    return on.ok();
  }

  bool add_number(float value) {
    if (!goes_on()) return false;
    if (!open_.empty()) {
      if (auto* numbers = std::get_if<JsonValue::Numbers>(&open_.back().data)) {
        numbers->push_back(value);
        return true;
      }
    }
    return add({value});
  }

  bool add(JsonValue value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return true;
    }
    auto& target = open_.back().data;
    if (auto* members = std::get_if<JsonValue::Members>(&target)) {
      members->back().value = std::move(value);
      return true;
    }
    if (auto* numbers = std::get_if<JsonValue::Numbers>(&target)) {
      JsonValue::Items items;
      for (const float number : *numbers) items.emplace_back().data = number;
      target = std::move(items);
    }
    std::get<JsonValue::Items>(target).push_back(std::move(value));
    return true;
  }

  std::string_view text_;
  ReadProgress* progress_;
  JsonValue root_;
  std::vector<JsonValue> open_;  // arrays and objects that have begun, outermost first
  std::optional<Error> error_;
};

}  // namespace

const JsonValue* find_member(const JsonValue::Members& members, std::string_view key) {
  const auto found = std::ranges::find(members, key, &JsonMember::key);
  return found == members.end() ? nullptr : &found->value;
}

std::string_view kind_of(const JsonValue& value) {
  constexpr std::string_view kKinds[] = {"null",     "true or false", "a number", "text",
                                         "an array", "an array",      "an object"};
  return kKinds[value.data.index()];
}

std::string one_line(std::string message) {
  constexpr std::size_t kMost = 400;
  if (message.size() > kMost) message = std::string(utf8_prefix(message, kMost)) + "…";
  for (char& c : message) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return message;
}

Result<JsonValue> parse_json(std::string_view text, ReadProgress* progress) {
  text = without_byte_order_mark(text);
  if (progress != nullptr) progress->expect(text.size());
  Builder builder(text, progress);
  const char* const end = text.data() + text.size();
  const bool done =
      nlohmann::json::sax_parse(CountedText(text.data(), end, progress), CountedText(end, end, nullptr), &builder);
  if (builder.error()) return *builder.error();
  if (!done) return bad_input("not valid JSON");
  return std::move(builder.root());
}

}  // namespace qkv
