// The .npy array format: headers checked field by field, data in C order.
// Format: numpy.lib.format, versions 1.0 to 3.0.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/result.h"

namespace qkv {

// What a .npy header says. `descr` as written ("<f4").
struct NpyHeader {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;  // empty = one number
  std::size_t data_offset = 0;       // from the start of the array's bytes
  std::uint64_t count = 1;           // product of shape, checked against overflow
  std::uint64_t item_bytes = 0;      // 0 for a descr that is not a plain number
};

// An array in memory, C order. float64 input keeps its precision in `values64`.
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

// Why parse_npy does not read an array with this header, with what to do; empty if it does.
std::string unreadable_reason(const NpyHeader& header);

// float32 and float64, little endian, C order; others are kUnsupported by name. Never throws, and allocates no
// more than the bytes at hand call for. parse_npy rounds float64 to float32; a finite number beyond float32's range
// is kBadInput.
Result<Tensor> parse_npy(std::span<const std::byte> bytes);
Result<Tensor64> parse_npy_float64(std::span<const std::byte> bytes);

// Version 1.0 bytes, `<f4`, `<f8` or `|u1`, C order. shape's product = values.size().
Bytes npy_bytes(std::span<const std::uint64_t> shape, std::span<const float> values);
Bytes npy_bytes(std::span<const std::uint64_t> shape, std::span<const double> values);
Bytes npy_bytes(std::span<const std::uint64_t> shape, std::span<const std::uint8_t> values);

// "(3, 4)" as NumPy prints it.
std::string shape_text(std::span<const std::uint64_t> shape);

}  // namespace qkv
