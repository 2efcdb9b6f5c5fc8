// Tensors in files, for tests of what opens them.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/tensor_io/npz.h"

namespace qkv::test {

namespace fs = std::filesystem;
using Shape = std::vector<std::uint64_t>;

inline NamedArray array_of(const std::string& name, const Shape& shape, int salt) {
  std::size_t size = 1;
  for (const std::uint64_t axis : shape) size *= axis;
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = 0.1f * static_cast<float>((i * 7 + salt) % 23) - 1;
  return {name, shape, std::move(values)};
}

// A file of tensors that is removed with the test.
class TensorsOnDisk {
 public:
  explicit TensorsOnDisk(const std::vector<NamedArray>& arrays, const std::string& name = "model")
      : path_(fs::temp_directory_path() / ("qkv_mapping_" + std::to_string(::getpid()) + "_" + name + ".npz")) {
    const Result<Bytes> bytes = npz_bytes(arrays);
    REQUIRE(bytes.ok());
    REQUIRE(write_file_atomically(path_, bytes.value()).ok());
  }
  TensorsOnDisk(std::string_view content, const std::string& name)
      : path_(fs::temp_directory_path() / ("qkv_mapping_" + std::to_string(::getpid()) + "_" + name)) {
    REQUIRE(write_file_atomically(path_, as_bytes(content)).ok());
  }
  ~TensorsOnDisk() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  TensorsOnDisk(const TensorsOnDisk&) = delete;
  TensorsOnDisk& operator=(const TensorsOnDisk&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace qkv::test
