#include "core/tensor_io/csv_writer.h"

#include <string_view>

#include "core/base/portable_number.h"

namespace qkv {
namespace {

// A name as a cell.
std::string cell_of(const std::string& name) {
  constexpr std::string_view kSpaces = " \t\r\n\v\f";
  const bool is_plain = !name.empty() && name.find_first_of("\",;\t\r\n") == std::string::npos &&
                        kSpaces.find(name.front()) == std::string_view::npos &&
                        kSpaces.find(name.back()) == std::string_view::npos;
  if (is_plain) return name;
  std::string cell = "\"";
  for (const char c : name) cell += c == '"' ? std::string("\"\"") : std::string(1, c);
  return cell + "\"";
}

template <class T>
std::string text_of(std::span<const T> values, std::size_t cols, char separator, const TableNames* names) {
  std::string text;
  text.reserve(values.size() * 8);
  if (names != nullptr) {
    for (const std::string& column : names->columns) text += separator + cell_of(column);
    text += '\n';
  }
  for (std::size_t n = 0; n < values.size(); ++n) {
    if (names != nullptr && n % cols == 0) text += cell_of(names->rows[n / cols]) + separator;
    if constexpr (sizeof(T) == 1) {
      text += std::to_string(values[n]);
    } else {
      text += portable_number(values[n]);
    }
    text += (n + 1) % cols == 0 ? '\n' : separator;
  }
  return text;
}

}  // namespace

std::string separated_text(std::span<const float> values, std::size_t cols, char separator, const TableNames* names) {
  return text_of(values, cols, separator, names);
}
std::string separated_text(std::span<const double> values, std::size_t cols, char separator, const TableNames* names) {
  return text_of(values, cols, separator, names);
}
std::string separated_text(std::span<const std::uint8_t> values, std::size_t cols, char separator,
                           const TableNames* names) {
  return text_of(values, cols, separator, names);
}

}  // namespace qkv
