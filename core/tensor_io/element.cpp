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

// Elements stored as `Bits`, each turned into a value by `value_of`.
template <class Value, class Bits, class ValueOf>
std::vector<Value> decode_bits(std::span<const std::byte> bytes, bool big_endian, ValueOf value_of) {
  std::vector<Value> values(bytes.size() / sizeof(Bits));
  const std::byte* source = bytes.data();
  for (Value& value : values) {
    Bits bits;
    std::memcpy(&bits, source, sizeof bits);
    source += sizeof bits;
    value = static_cast<Value>(value_of(big_endian ? reversed(bits) : bits));
  }
  return values;
}

// Numbers whose type is that of C++.
template <class Value, class Number, class Bits>
std::vector<Value> decode_numbers(std::span<const std::byte> bytes, bool big_endian) {
  if constexpr (std::is_same_v<Value, Number>) {
    if (!big_endian) {
      std::vector<Value> values(bytes.size() / sizeof(Value));
      if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(Value));
      return values;
    }
  }
  return decode_bits<Value, Bits>(bytes, big_endian, [](Bits bits) { return std::bit_cast<Number>(bits); });
}

template <class Value>
std::vector<Value> decode(std::span<const std::byte> bytes, Element element) {
  const bool big = element.big_endian;
  switch (element.type) {
    case ElementType::kFloat16:
      return decode_bits<Value, std::uint16_t>(bytes, big, from_float16);
    case ElementType::kBfloat16:
      return decode_bits<Value, std::uint16_t>(bytes, big, from_bfloat16);
    case ElementType::kFloat32:
      return decode_numbers<Value, float, std::uint32_t>(bytes, big);
    case ElementType::kFloat64:
      return decode_numbers<Value, double, std::uint64_t>(bytes, big);
    case ElementType::kInt8:
      return decode_numbers<Value, std::int8_t, std::uint8_t>(bytes, big);
    case ElementType::kInt16:
      return decode_numbers<Value, std::int16_t, std::uint16_t>(bytes, big);
    case ElementType::kInt32:
      return decode_numbers<Value, std::int32_t, std::uint32_t>(bytes, big);
    case ElementType::kInt64:
      return decode_numbers<Value, std::int64_t, std::uint64_t>(bytes, big);
    case ElementType::kUint8:
      return decode_numbers<Value, std::uint8_t, std::uint8_t>(bytes, big);
    case ElementType::kUint16:
      return decode_numbers<Value, std::uint16_t, std::uint16_t>(bytes, big);
    case ElementType::kUint32:
      return decode_numbers<Value, std::uint32_t, std::uint32_t>(bytes, big);
    case ElementType::kUint64:
      return decode_numbers<Value, std::uint64_t, std::uint64_t>(bytes, big);
    case ElementType::kBool:
      return decode_bits<Value, std::uint8_t>(bytes, big, [](std::uint8_t bits) { return bits != 0 ? 1 : 0; });
    case ElementType::kText:
      break;
  }
  return {};
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

Result<std::vector<float>> decode_float32(std::span<const std::byte> bytes, Element element) {
  std::vector<float> values = decode<float>(bytes, element);
  if (element.type != ElementType::kFloat64) return values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isinf(values[i]) || std::isinf(float64_at(bytes, i, element.big_endian))) continue;
    return bad_input("number " + std::to_string(i) + " of the array is beyond float32's range");
  }
  return values;
}

std::vector<double> decode_float64(std::span<const std::byte> bytes, Element element) {
  return decode<double>(bytes, element);
}

std::vector<std::string> decode_text(std::span<const std::byte> bytes, Element element) {
  std::vector<std::string> texts;
  for (; bytes.size() >= element.bytes && element.bytes > 0; bytes = bytes.subspan(element.bytes)) {
    const std::vector<char32_t> code_points =
        decode_bits<char32_t, std::uint32_t>(bytes.first(element.bytes), element.big_endian, std::identity());
    std::size_t end = code_points.size();
    while (end > 0 && code_points[end - 1] == 0) --end;
    std::string text;
    for (std::size_t i = 0; i < end; ++i) append_utf8(text, code_points[i]);
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace qkv
