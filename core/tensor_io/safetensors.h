// The header of a .safetensors file: the names, types and places of its tensors, every rule of the format checked.
// Format: https://huggingface.co/docs/safetensors; 8 bytes of header length, a JSON object, then the data.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/tensor_io/element.h"

namespace qkv {

struct SafetensorsEntry {
  std::string name;
  std::string dtype;                 // as written: "BF16"
  std::optional<Element> element;    // nothing for a type that is not read
  std::vector<std::uint64_t> shape;  // empty = one number
  std::uint64_t begin = 0;           // of its data, bytes from the start of the file
  std::uint64_t end = 0;
};

bool looks_like_safetensors(std::span<const std::byte> head);

inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;  // bytes, the format's own limit

// Every tensor in the order of the header, which is parsed as it is read and never held as a document. Errors:
// kBadInput, naming the tensor: broken JSON, a key that comes twice, an unknown or missing key, offsets that are
// inverted, out of range, overlapping or leave bytes to nobody, a size other than the shape's. `file` is the whole
// file; its data is not looked at.
Result<std::vector<SafetensorsEntry>> parse_safetensors(std::span<const std::byte> file);

}  // namespace qkv
