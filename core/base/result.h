// A value or the error that explains why there is none.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace qkv {

// What kind of failure an Error is; the command line turns it into an exit code.
enum class ErrorCode {
  kUsage,        // a wrong argument or option value
  kBadInput,     // a file or text that breaks its format or contradicts itself
  kUnsupported,  // well-formed input of a kind this program does not read
  kCannotRead,   // the operating system refused to read
  kCannotWrite,  // the operating system refused to write
  kNoDisplay,    // no display or no OpenGL 3.3
  kCancelled,    // the caller asked to stop
};

// One line for a person: what is wrong, where, what to do. No trailing newline.
struct Error {
  ErrorCode code = ErrorCode::kBadInput;
  std::string message;
  std::optional<std::size_t> offset = std::nullopt;  // bytes from the start of the input
};

// Holds a T or an Error. `value()` may be called only after `ok()` was checked.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

// Success without a value.
struct Done {};
using Status = Result<Done>;

inline Error bad_input(std::string message) { return {ErrorCode::kBadInput, std::move(message)}; }
inline Error unsupported(std::string message) { return {ErrorCode::kUnsupported, std::move(message)}; }
inline Error usage_error(std::string message) { return {ErrorCode::kUsage, std::move(message)}; }

}  // namespace qkv
