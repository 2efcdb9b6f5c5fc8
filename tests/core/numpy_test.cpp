// Files that NumPy itself wrote, compared bit by bit with what NumPy read from them.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/tensor_io/tensor_file.h"

using namespace qkv;

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// A Python that has NumPy; empty where there is none.
std::string python_with_numpy() {
  for (const std::string python : {"/usr/bin/python3", "python3"}) {
    if (std::system((python + " -c 'import numpy' >/dev/null 2>&1").c_str()) == 0) return python;
  }
  return {};
}

// Removed with what it holds.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("qkvlab-numpy-" + std::to_string(std::rand()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
};

// The same bits, NaN apart: its payload is nobody's data.
template <class Value>
bool same_values(const std::vector<Value>& values, const Bytes& expected) {
  if (values.size() * sizeof(Value) != expected.size()) return false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    Value wanted;
    std::memcpy(&wanted, expected.data() + i * sizeof wanted, sizeof wanted);
    if (std::isnan(wanted) ? !std::isnan(values[i]) : std::memcmp(&wanted, &values[i], sizeof wanted) != 0)
      return false;
  }
  return true;
}

void check_numbers(const TensorFile& file, const std::string& name, const Json& entry, const fs::path& folder) {
  CHECK(file.find(name)->dtype == entry["dtype"]);
  const Result<Tensor> narrow = file.read(name);
  REQUIRE_MESSAGE(narrow.ok(), narrow.error().message);
  CHECK(narrow.value().shape == entry["shape"].get<std::vector<std::uint64_t>>());
  CHECK(same_values(narrow.value().values, read_file(folder / std::string(entry["float32"])).value()));
  const Result<Tensor64> wide = file.read_float64(name);
  REQUIRE_MESSAGE(wide.ok(), wide.error().message);
  CHECK(same_values(wide.value().values, read_file(folder / std::string(entry["float64"])).value()));

  // Each part along the first axis is that part of the whole.
  const std::vector<std::uint64_t>& shape = narrow.value().shape;
  for (std::uint64_t i = 0; !shape.empty() && i < std::min<std::uint64_t>(shape[0], 3); ++i) {
    const std::vector<std::uint64_t> leading{i};
    const Result<Tensor64> part = file.read_float64(name, leading);
    REQUIRE_MESSAGE(part.ok(), part.error().message);
    const std::size_t count = part.value().values.size();
    REQUIRE(count * shape[0] == wide.value().values.size());
    const auto* const bytes = reinterpret_cast<const std::byte*>(wide.value().values.data() + i * count);
    CHECK(same_values(part.value().values, Bytes(bytes, bytes + count * sizeof(double))));
  }
}

}  // namespace

TEST_CASE("NumPy's files: every dtype, byte order, memory order, version and compression") {
  const std::string python = python_with_numpy();
  if (python.empty()) {
    MESSAGE("not run: there is no python3-numpy");
    return;
  }
  const Folder folder;
  const std::string command =
      python + " '" QKV_SOURCE_DIR "/tests/support/make_arrays.py' '" + folder.path.string() + "'";
  REQUIRE(std::system(command.c_str()) == 0);
  const Result<Bytes> manifest = read_file(folder.path / "manifest.json");
  REQUIRE(manifest.ok());
  std::map<std::string, TensorFile> files;
  std::size_t numbers = 0, texts = 0, refused = 0;
  for (const Json& entry : Json::parse(as_text(manifest.value()))) {
    const std::string file_name = entry["file"], name = entry["name"];
    CAPTURE(file_name);
    CAPTURE(name);
    if (!files.contains(file_name)) {
      Result<TensorFile> opened = TensorFile::open(folder.path / file_name);
      REQUIRE_MESSAGE(opened.ok(), opened.error().message);
      files.emplace(file_name, std::move(opened).value());
    }
    const TensorFile& file = files.at(file_name);
    const TensorInfo* info = file.find(name);
    REQUIRE(info != nullptr);
    if (entry.contains("problem")) {
      CHECK_MESSAGE(info->problem.find(entry["problem"]) != std::string::npos, info->problem);
      CHECK_FALSE(file.read(name).ok());
      ++refused;
    } else if (entry.contains("texts")) {
      const Result<std::vector<std::string>> read = file.read_text(name);
      REQUIRE_MESSAGE(read.ok(), read.error().message);
      CHECK(read.value() == entry["texts"].get<std::vector<std::string>>());
      CHECK(info->shape == entry["shape"].get<std::vector<std::uint64_t>>());
      ++texts;
    } else {
      check_numbers(file, name, entry, folder.path);
      ++numbers;
    }
  }
  CHECK(numbers >= 3 * 12 * 2 * 5 * 2);  // types, byte orders, shapes and memory orders, in .npy and two .npz
  CHECK(texts == 3 * 4);
  CHECK(refused == 6);
}
