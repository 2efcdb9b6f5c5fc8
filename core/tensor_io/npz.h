// .npz files: named .npy arrays in a zip archive, and a single .npy as a file of one array.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "core/tensor_io/npy.h"

namespace qkv {

struct ArrayInfo {
  std::string name;  // without ".npy"
  NpyHeader header;
  std::uint64_t bytes = 0;  // of the whole array, uncompressed
  std::string problem;      // why it cannot be read ("dtype <i4 is not read yet"), empty if it can
};

// An opened file. Arrays are read one at a time; those nobody asks for stay unread.
class NpzFile {
 public:
  // .npz or .npy, told by content; the array of a .npy is named by the file ("q.npy" is q).
  static Result<NpzFile> open(const std::filesystem::path& path);
  static Result<NpzFile> from_bytes(Bytes bytes, std::string npy_name);

  const std::vector<ArrayInfo>& arrays() const { return arrays_; }
  const ArrayInfo* find(std::string_view name) const;
  // kBadInput if there is none of that name; else as parse_npy, with the name in the message.
  Result<Tensor> read(std::string_view name) const;
  Result<Tensor64> read_float64(std::string_view name) const;

 private:
  Result<Bytes> entry_bytes(std::string_view name) const;
  Bytes bytes_;  // the file
  bool is_zip_ = false;
  std::vector<ArrayInfo> arrays_;
};

bool looks_like_npz(std::span<const std::byte> head);
bool looks_like_npy(std::span<const std::byte> head);

struct NamedArray {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::variant<std::vector<float>, std::vector<std::uint8_t>, std::vector<double>> values;  // <f4, |u1, <f8
};

// Bytes of an .npz with the arrays stored in order; the same arrays give the same bytes on any day.
Result<Bytes> npz_bytes(const std::vector<NamedArray>& arrays);

}  // namespace qkv
