// A .safetensors file of 16-bit unsigned integers that are the bits of bfloat16 numbers, as programs without the type
// save them.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

namespace qkv::test {

struct BitsArray {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::vector<float> values;  // that bfloat16 holds exactly
};

inline std::string safetensors_of_bits(const std::vector<BitsArray>& arrays) {
  std::string header = "{", data;
  for (const BitsArray& array : arrays) {
    const std::size_t begin = data.size();
    for (const float value : array.values) {
      const std::uint32_t bits = std::bit_cast<std::uint32_t>(value) >> 16;
      data += static_cast<char>(bits & 0xff);
      data += static_cast<char>(bits >> 8);
    }
    header += (header.size() > 1 ? ",\"" : "\"") + array.name + "\":{\"dtype\":\"U16\",\"shape\":[";
    for (std::size_t i = 0; i < array.shape.size(); ++i) {
      header += (i > 0 ? "," : "") + std::to_string(array.shape[i]);
    }
    header += "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(data.size()) + "]}";
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string file;
  for (int byte = 0; byte < 8; ++byte) file += static_cast<char>((header.size() >> (8 * byte)) & 0xff);
  return file + header + data;
}

// q, k and v of one head [rows, columns] with quarters in the cells.
inline std::vector<BitsArray> qkv_bits(std::uint64_t rows, std::uint64_t columns) {
  std::vector<BitsArray> arrays;
  for (const std::string name : {"q", "k", "v"}) {
    BitsArray& array = arrays.emplace_back(BitsArray{name, {rows, columns}, {}});
    for (std::uint64_t i = 0; i < rows * columns; ++i) {
      array.values.push_back(0.25f * static_cast<float>((i * 5 + arrays.size()) % 9) - 1);
    }
  }
  return arrays;
}

}  // namespace qkv::test
