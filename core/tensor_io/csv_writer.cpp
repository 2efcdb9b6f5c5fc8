#include "core/tensor_io/csv_writer.h"

#include "core/base/portable_number.h"

namespace qkv {
namespace {

template <class T>
std::string text_of(std::span<const T> values, std::size_t cols, char separator) {
  std::string text;
  text.reserve(values.size() * 8);
  for (std::size_t n = 0; n < values.size(); ++n) {
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

std::string separated_text(std::span<const float> values, std::size_t cols, char separator) {
  return text_of(values, cols, separator);
}
std::string separated_text(std::span<const double> values, std::size_t cols, char separator) {
  return text_of(values, cols, separator);
}
std::string separated_text(std::span<const std::uint8_t> values, std::size_t cols, char separator) {
  return text_of(values, cols, separator);
}

}  // namespace qkv
