// The .npy array format: headers checked field by field, arrays written.
// Format: numpy.lib.format, versions 1.0 to 3.0.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/result.h"
#include "core/tensor_io/element.h"

namespace qkv {

// What a .npy header says. `descr` as written ("<f4").
struct NpyHeader {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;  // empty = one number
  std::size_t data_offset = 0;       // from the start of the array's bytes
  std::uint64_t count = 1;           // product of shape; count · item_bytes fits 64 bits
  std::uint64_t item_bytes = 0;      // of one element as stored; 0 for objects and structures
  std::optional<Element> element;    // nothing for a descr that is not read
};

// An array in memory, C order.
struct Tensor {
  std::vector<std::uint64_t> shape;
  std::vector<float> values;
};
struct Tensor64 {
  std::vector<std::uint64_t> shape;
  std::vector<double> values;
};

// Reads a header from the first bytes of an array; `total_bytes` is the array's whole length, against which the
// data's size is checked. Errors: kBadInput (magic, version, header, size), with an offset.
Result<NpyHeader> parse_npy_header(std::span<const std::byte> bytes, std::uint64_t total_bytes);

// Bytes from the start of an array to its data, read from the first 12 bytes ("magic, version, length");
// 0 where they do not say, are fewer, or ask for a header beyond kMaxNpyHeader.
inline constexpr std::size_t kMaxNpyHeader = std::size_t{1} << 20;
std::size_t npy_data_offset(std::span<const std::byte> first_bytes);

// Why an array with this header is not read, with what to do; empty if it is.
std::string unreadable_reason(const NpyHeader& header);

// The header of an array in C order, version 1.0, which its elements follow: kFloat32, kFloat64 or kUint8.
Bytes npy_header(std::span<const std::uint64_t> shape, ElementType type);
// The whole array. shape's product = values.size().
Bytes npy_bytes(std::span<const std::uint64_t> shape, std::span<const float> values);
Bytes npy_bytes(std::span<const std::uint64_t> shape, std::span<const double> values);
Bytes npy_bytes(std::span<const std::uint64_t> shape, std::span<const std::uint8_t> values);

// The product of the dimensions; nullopt where that many elements of `item_bytes` need more than 64 bits. Dimensions
// of 0 do not hide an overflow of the others: readers multiply partial shapes.
std::optional<std::uint64_t> element_count(std::span<const std::uint64_t> shape, std::uint64_t item_bytes);

// "(3, 4)" as NumPy prints it.
std::string shape_text(std::span<const std::uint64_t> shape);

}  // namespace qkv
