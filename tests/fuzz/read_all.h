// Reads everything that an opened tensor file lists, and ends the program where what it reads contradicts the list.
#pragma once

#include <cstdlib>
#include <span>
#include <vector>

#include "core/tensor_io/tensor_file.h"

namespace qkv::fuzz {

inline void require(bool holds) {
  if (!holds) std::abort();
}

inline std::uint64_t product(std::span<const std::uint64_t> shape) {
  std::uint64_t count = 1;
  for (const std::uint64_t dimension : shape) count *= dimension;
  return count;
}

// A part is the same numbers as in the whole.
template <class TensorType>
void check_part(const TensorType& whole, const Result<TensorType>& part) {
  if (!part.ok()) return;  // a stored entry whose end is damaged, or numbers out of range
  const std::size_t count = part.value().values.size();
  require(count == product(part.value().shape));
  require(count <= whole.values.size());
  for (std::size_t i = 0; i < count; ++i) {
    const auto a = part.value().values[i], b = whole.values[i];
    require(a == b || (a != a && b != b));
  }
}

inline void read_all(const TensorFile& file) {
  for (const TensorInfo& info : file.tensors()) {
    const Result<Tensor> narrow = file.read(info.name);
    const Result<Tensor64> wide = file.read_float64(info.name);
    const auto texts = file.read_text(info.name);
    require(!(narrow.ok() && texts.ok()));
    if (!info.problem.empty()) require(!narrow.ok() && !wide.ok() && !texts.ok());
    if (texts.ok()) require(info.is_text && texts.value().size() == product(info.shape));
    if (!wide.ok()) continue;
    require(wide.value().shape == info.shape && wide.value().values.size() == product(info.shape));
    const std::vector<std::uint64_t> first(1, 0);
    if (!info.shape.empty() && info.shape[0] > 0) check_part(wide.value(), file.read_float64(info.name, first));
    if (narrow.ok()) require(narrow.value().values.size() == wide.value().values.size());
  }
}

// Opens the bytes as a file called x.
inline void open_and_read(std::span<const std::uint8_t> bytes) {
  const auto content = std::as_bytes(bytes);
  const Result<TensorFile> file = TensorFile::from_bytes({content.begin(), content.end()}, "x");
  if (!file.ok()) {
    require(!file.error().message.empty() && file.error().message.find('\n') == std::string::npos);
    return;
  }
  read_all(file.value());
}

}  // namespace qkv::fuzz
