#include "core/tensor_io/element.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>

#include "core/base/half_float.h"
#include "core/base/utf8.h"

namespace qkv {

static_assert(std::endian::native == std::endian::little, "bytes are turned round where they are big endian");

namespace {

std::uint8_t reversed(std::uint8_t bits) { return bits; }
std::uint16_t reversed(std::uint16_t bits) { return __builtin_bswap16(bits); }
std::uint32_t reversed(std::uint32_t bits) { return __builtin_bswap32(bits); }
std::uint64_t reversed(std::uint64_t bits) { return __builtin_bswap64(bits); }

// Elements stored as `Bits`, each turned into a value by `value_of`; as many as `values` has.
template <class Bits, class Value, class ValueOf>
void decode_bits(std::span<const std::byte> bytes, bool big_endian, std::span<Value> values, ValueOf value_of) {
  const std::byte* source = bytes.data();
  for (Value& value : values) {
    Bits bits;
    std::memcpy(&bits, source, sizeof bits);
    source += sizeof bits;
    value = static_cast<Value>(value_of(big_endian ? reversed(bits) : bits));
  }
}

// Numbers whose type is that of C++.
template <class Number, class Bits, class Value>
void decode_numbers(std::span<const std::byte> bytes, bool big_endian, std::span<Value> values) {
  if constexpr (std::is_same_v<Value, Number>) {
    if (!big_endian) {
      if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size_bytes());
      return;
    }
  }
  decode_bits<Bits>(bytes, big_endian, values, [](Bits bits) { return std::bit_cast<Number>(bits); });
}

template <class Value>
void decode(std::span<const std::byte> bytes, Element element, std::span<Value> values) {
  const bool big = element.big_endian;
  switch (element.type) {
    case ElementType::kFloat16:
      return decode_bits<std::uint16_t>(bytes, big, values, from_float16);
    case ElementType::kBfloat16:
      return decode_bits<std::uint16_t>(bytes, big, values, from_bfloat16);
    case ElementType::kFloat32:
      return decode_numbers<float, std::uint32_t>(bytes, big, values);
    case ElementType::kFloat64:
      return decode_numbers<double, std::uint64_t>(bytes, big, values);
    case ElementType::kInt8:
      return decode_numbers<std::int8_t, std::uint8_t>(bytes, big, values);
    case ElementType::kInt16:
      return decode_numbers<std::int16_t, std::uint16_t>(bytes, big, values);
    case ElementType::kInt32:
      return decode_numbers<std::int32_t, std::uint32_t>(bytes, big, values);
    case ElementType::kInt64:
      return decode_numbers<std::int64_t, std::uint64_t>(bytes, big, values);
    case ElementType::kUint8:
      return decode_numbers<std::uint8_t, std::uint8_t>(bytes, big, values);
    case ElementType::kUint16:
      return decode_numbers<std::uint16_t, std::uint16_t>(bytes, big, values);
    case ElementType::kUint32:
      return decode_numbers<std::uint32_t, std::uint32_t>(bytes, big, values);
    case ElementType::kUint64:
      return decode_numbers<std::uint64_t, std::uint64_t>(bytes, big, values);
    case ElementType::kBool:
      return decode_bits<std::uint8_t>(bytes, big, values, [](std::uint8_t bits) { return bits != 0 ? 1 : 0; });
    case ElementType::kText:
      return;
  }
}

// The values behind those that are there.
template <class Value>
std::span<Value> append(std::vector<Value>& values, std::span<const std::byte> bytes, Element element) {
  const std::size_t before = values.size();
  values.resize(before + bytes.size() / static_cast<std::size_t>(element.bytes));
  const std::span<Value> added = std::span(values).subspan(before);
  decode(bytes, element, added);
  return added;
}

double float64_at(std::span<const std::byte> bytes, std::size_t index, bool big_endian) {
  std::uint64_t bits;
  std::memcpy(&bits, bytes.data() + index * sizeof bits, sizeof bits);
  return std::bit_cast<double>(big_endian ? reversed(bits) : bits);
}

struct TypeName {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr std::array<TypeName, 14> kTypes{{{"float16", 2},
                                           {"bfloat16", 2},
                                           {"float32", 4},
                                           {"float64", 8},
                                           {"int8", 1},
                                           {"int16", 2},
                                           {"int32", 4},
                                           {"int64", 8},
                                           {"uint8", 1},
                                           {"uint16", 2},
                                           {"uint32", 4},
                                           {"uint64", 8},
                                           {"bool", 1},
                                           {"str", 0}}};

}  // namespace

std::string_view dtype_name(ElementType type) { return kTypes[static_cast<std::size_t>(type)].name; }
std::uint64_t element_bytes(ElementType type) { return kTypes[static_cast<std::size_t>(type)].bytes; }

Status append_values(std::vector<float>& values, std::span<const std::byte> bytes, Element element) {
  const std::span<const float> added = append(values, bytes, element);
  if (element.type != ElementType::kFloat64) return Done{};
  for (std::size_t i = 0; i < added.size(); ++i) {
    if (!std::isinf(added[i]) || std::isinf(float64_at(bytes, i, element.big_endian))) continue;
    const std::size_t index = values.size() - added.size() + i;
    return bad_input("number " + std::to_string(index) + " of the array is beyond float32's range");
  }
  return Done{};
}

Status append_values(std::vector<double>& values, std::span<const std::byte> bytes, Element element) {
  append(values, bytes, element);
  return Done{};
}

std::vector<std::string> decode_text(std::span<const std::byte> bytes, Element element) {
  std::vector<std::string> texts;
  for (; bytes.size() >= element.bytes && element.bytes > 0; bytes = bytes.subspan(element.bytes)) {
    std::vector<char32_t> code_points(static_cast<std::size_t>(element.bytes / sizeof(char32_t)));
    decode_bits<std::uint32_t>(bytes.first(element.bytes), element.big_endian, std::span(code_points), std::identity());
    std::size_t end = code_points.size();
    while (end > 0 && code_points[end - 1] == 0) --end;
    std::string text;
    for (std::size_t i = 0; i < end; ++i) append_utf8(text, code_points[i]);
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace qkv
