// The numbers and texts that a tensor file can hold, and how their bytes become values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace qkv {

enum class ElementType : std::uint8_t {
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kBool,
  kText,  // UTF-32 code points, zeros after the last one
};

// How one element is stored.
struct Element {
  ElementType type = ElementType::kFloat32;
  std::uint64_t bytes = 4;  // of one element; a multiple of 4 for text
  bool big_endian = false;
};

// NumPy's name: "float32", "bfloat16", "bool", "str".
std::string_view dtype_name(ElementType type);
// Bytes of one element; 0 for text, whose length the file says.
std::uint64_t element_bytes(ElementType type);

// Puts the elements that follow each other in `bytes` behind `values`; their length is a multiple of element.bytes. No
// text. Integers are rounded to the nearest float, booleans are 0 and 1. A finite number beyond float32's range is
// kBadInput, with its index in `values`. Throws only std::bad_alloc.
Status append_values(std::vector<float>& values, std::span<const std::byte> bytes, Element element);
Status append_values(std::vector<double>& values, std::span<const std::byte> bytes, Element element);

// Texts as UTF-8. What is no Unicode character (a lone surrogate, a code point beyond the last) becomes U+FFFD.
std::vector<std::string> decode_text(std::span<const std::byte> bytes, Element element);

}  // namespace qkv
