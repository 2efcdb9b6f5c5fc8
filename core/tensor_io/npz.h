// .npz files, named .npy arrays in a zip archive: how they begin and how they are written. TensorFile reads them.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/tensor_io/npy.h"

namespace qkv {

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
