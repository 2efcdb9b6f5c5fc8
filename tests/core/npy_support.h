// Arrays as .npy files write them, made byte by byte.
#pragma once

#include <string>
#include <vector>

#include "core/base/file.h"

namespace qkv::test {

// An array whose header is `dict`, padded as NumPy pads it, followed by `data_bytes` zero bytes.
inline Bytes array_with(const std::string& dict, std::size_t data_bytes, int major = 1) {
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  std::string text = "\x93NUMPY";
  text += static_cast<char>(major);
  text += '\0';
  for (std::size_t i = 0; i < length_bytes; ++i) text += static_cast<char>(dict.size() >> (8 * i) & 0xff);
  text += dict;
  text.append(data_bytes, '\0');
  const auto bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

inline std::string dict_of(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }  \n";
}

template <class T>
Bytes array_of(const std::string& descr, const std::vector<T>& values) {
  Bytes bytes = array_with(dict_of(descr, "False", "(" + std::to_string(values.size()) + ",)"), 0);
  const auto data = std::as_bytes(std::span(values));
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}

}  // namespace qkv::test
