#include "core/tensor_io/safetensors.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <tuple>
#include <vector>

#include "core/base/thread_sanitizer.h"
#include "core/tensor_io/tensor_file.h"

using namespace qkv;

namespace {

Bytes file_of(const std::string& header, std::size_t data_bytes, std::uint64_t length) {
  std::string text;
  for (int i = 0; i < 8; ++i) text += static_cast<char>(length >> (8 * i) & 0xff);
  text += header;
  for (std::size_t i = 0; i < data_bytes; ++i) text += static_cast<char>(i);
  const auto bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}
Bytes file_of(const std::string& header, std::size_t data_bytes) { return file_of(header, data_bytes, header.size()); }

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

void check_bad(const Bytes& bytes, const std::string& words) {
  const Result<TensorFile> file = TensorFile::from_bytes(bytes, "x");
  REQUIRE_FALSE(file.ok());
  INFO(file.error().message);
  CHECK(file.error().code == ErrorCode::kBadInput);
  CHECK(file.error().message.find(words) != std::string::npos);
  CHECK(file.error().message.find('\n') == std::string::npos);
  CHECK(file.error().offset.value_or(0) <= bytes.size());
}

// A header around members, with `data_bytes` after it.
void check_bad(const std::string& members, std::size_t data_bytes, const std::string& words) {
  CAPTURE(members);
  check_bad(file_of("{" + members + "}", data_bytes), words);
}

}  // namespace

TEST_CASE("safetensors: tensors of every type, metadata, and spaces after the header") {
  const std::string header = "{\"__metadata__\":{\"format\":\"pt\"}," + tensor("b", "BF16", "[1,2]", "[8,12]") + "," +
                             tensor("a", "F64", "[]", "[0,8]") + "," + tensor("h", "F16", "[2]", "[12,16]") + "," +
                             tensor("t", "BOOL", "[2,2]", "[16,20]") + "," + tensor("none", "I64", "[0,3]", "[20,20]") +
                             "}   ";
  const Result<TensorFile> file = TensorFile::from_bytes(file_of(header, 20), "x");
  REQUIRE_MESSAGE(file.ok(), file.error().message);
  REQUIRE(file.value().tensors().size() == 5);
  CHECK(file.value().tensors()[0].name == "b");
  CHECK(file.value().tensors()[0].dtype == "bfloat16");
  CHECK(file.value().tensors()[0].shape == std::vector<std::uint64_t>{1, 2});
  CHECK(file.value().tensors()[0].bytes == 4);
  CHECK(file.value().read_float64("a").value().values[0] == 0x1.6050403020100p-911);
  CHECK(file.value().read_float64("a").value().shape.empty());
  CHECK(file.value().read("b").value().values == std::vector<float>{0x1.1000000000000p-109f, 0x1.1400000000000p-105f});
  CHECK(file.value().read("t").value().values == std::vector<float>{1, 1, 1, 1});
  CHECK(file.value().read("none").value().values.empty());
  const std::vector<std::uint64_t> second = {1};
  CHECK(file.value().read("h", second).value().values.size() == 1);
  CHECK(TensorFile::from_bytes(file_of("{}", 0), "x").value().tensors().empty());
  CHECK(TensorFile::from_bytes(file_of("{\"__metadata__\":{}}", 0), "x").ok());

  const std::vector<std::tuple<std::string, std::size_t, std::string>> others{
      {"F32", 4, "float32"}, {"I8", 1, "int8"},    {"I16", 2, "int16"},  {"I32", 4, "int32"}, {"I64", 8, "int64"},
      {"U8", 1, "uint8"},    {"U16", 2, "uint16"}, {"U32", 4, "uint32"}, {"U64", 8, "uint64"}};
  for (const auto& [dtype, bytes, name] : others) {
    const std::string size = std::to_string(bytes);
    const Result<TensorFile> one =
        TensorFile::from_bytes(file_of("{" + tensor("q", dtype, "[1]", "[0," + size + "]") + "}", bytes), "x");
    REQUIRE_MESSAGE(one.ok(), one.error().message);
    CHECK(one.value().tensors()[0].dtype == name);
    CHECK(one.value().read("q").ok());
  }
}

TEST_CASE("safetensors: types that are not read are listed and not opened, the others are read") {
  const std::string header =
      "{" + tensor("w", "F8_E4M3", "[3]", "[0,3]") + "," + tensor("q", "U8", "[2]", "[3,5]") + "}";
  const Result<TensorFile> file = TensorFile::from_bytes(file_of(header, 5), "x");
  REQUIRE_MESSAGE(file.ok(), file.error().message);
  CHECK(file.value().find("w")->problem == "dtype F8_E4M3 is not read: save it as F32");
  CHECK(file.value().find("w")->dtype == "F8_E4M3");
  const Result<Tensor> w = file.value().read("w");
  REQUIRE_FALSE(w.ok());
  CHECK(w.error().code == ErrorCode::kUnsupported);
  CHECK(w.error().message == "array \"w\": dtype F8_E4M3 is not read: save it as F32");
  CHECK(file.value().read("q").value().values == std::vector<float>{3, 4});
}

TEST_CASE("safetensors: the header's length") {
  const std::string header = "{" + tensor("q", "U8", "[2]", "[0,2]") + "}";
  check_bad(file_of(header, 2, 100'000'001), "claims 100000001 bytes, more than the 100 MB");
  check_bad(file_of(header, 2, UINT64_MAX), "claims 18446744073709551615 bytes, more than the 100 MB");
  check_bad(file_of(header, 2, header.size() + 3), "follow: the file is cut short");
  check_bad(file_of(header, 2, 0), "does not start with \"{\"");
  check_bad(file_of(header, 2, header.size() - 1), "not valid JSON at byte 60 of the file");
  check_bad(file_of(header + "\n", 2), "does not end with \"}\" and spaces");
  check_bad(file_of(header + "x", 2), "does not end with \"}\" and spaces");
  check_bad(file_of(header + " {}", 2), "not valid JSON at byte");
  const Bytes whole = file_of(header, 2);
  for (std::size_t length = 9; length < whole.size(); ++length) {
    CAPTURE(length);
    check_bad({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)}, "cut short");
  }
}

TEST_CASE("safetensors: every single changed byte is read or refused, never worse") {
  const Bytes whole =
      file_of("{" + tensor("q", "U8", "[2]", "[0,2]") + "," + tensor("k", "F32", "[1]", "[2,6]") + "}", 6);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      Bytes changed = whole;
      changed[i] = static_cast<std::byte>(value);
      const Result<TensorFile> file = TensorFile::from_bytes(std::move(changed), "x");
      if (!file.ok()) continue;
      for (const TensorInfo& info : file.value().tensors()) {
        const Result<Tensor> read = file.value().read(info.name);
        CHECK(read.ok() == info.problem.empty());
      }
    }
  }
}

TEST_CASE("safetensors: the header's JSON") {
  check_bad("\"q\":[]", 0, "\"q\" in the header must be an object");
  check_bad("\"q\":1", 0, "\"q\" in the header must be an object");
  check_bad("\"q\":null", 0, "\"q\" in the header must be an object");
  check_bad("\"q\":{}", 0, "tensor \"q\" has no \"dtype\"");
  check_bad(R"("q":{"dtype":"U8","data_offsets":[0,0]})", 0, "tensor \"q\" has no \"shape\"");
  check_bad(R"("q":{"dtype":"U8","shape":[0]})", 0, "tensor \"q\" has no \"data_offsets\"");
  check_bad(R"("q":{"dtype":8,"shape":[0],"data_offsets":[0,0]})", 0, "tensor \"q\": \"dtype\" must be text");
  check_bad(R"("q":{"dtype":[],"shape":[0],"data_offsets":[0,0]})", 0, "tensor \"q\": \"dtype\" must be text");
  check_bad(R"("q":{"dtype":"U8","shape":"0"})", 0, "tensor \"q\": \"shape\" must be an array");
  check_bad(R"("q":{"dtype":"U8","shape":{}})", 0, "tensor \"q\": \"shape\" must be an array");
  check_bad(R"("q":{"dtype":"U8","dtype":"U8"})", 0, "tensor \"q\" has \"dtype\" twice");
  check_bad(R"("q":{"dtype":"U8","strides":[1]})", 0, "tensor \"q\" has the key \"strides\"");
  for (const std::string number : {"-1", "1.0", "1e3", "18446744073709551616", "\"1\"", "true", "null", "[1]", "{}"}) {
    CAPTURE(number);
    check_bad(tensor("q", "U8", "[" + number + "]", "[0,1]"), 1,
              "tensor \"q\": \"shape\" may hold whole numbers from 0");
    check_bad(tensor("q", "U8", "[1]", "[0," + number + "]"), 1,
              "tensor \"q\": \"data_offsets\" may hold whole numbers");
  }
  check_bad(tensor("q", "U8", "[0]", "[0]"), 0, "tensor \"q\" must have two \"data_offsets\"");
  check_bad(tensor("q", "U8", "[0]", "[]"), 0, "tensor \"q\" must have two \"data_offsets\"");
  check_bad(tensor("q", "U8", "[0]", "[0,0,0]"), 0, "tensor \"q\" must have two \"data_offsets\"");
  const std::string q = tensor("q", "U8", "[0]", "[0,0]");
  check_bad(q + "," + q, 0, "the key \"q\" comes twice in the header");
  check_bad(R"("__metadata__":{"a":"1","a":"2"})", 0, "the key \"a\" comes twice in __metadata__");
  check_bad(R"("__metadata__":{},"__metadata__":{})", 0, "the key \"__metadata__\" comes twice in the header");
  check_bad(R"("__metadata__":{"a":1})", 0, "the value of \"a\" in __metadata__ must be text");
  check_bad(R"("__metadata__":{"a":{}})", 0, "the value of \"a\" in __metadata__ must be text");
  check_bad(R"("__metadata__":"a")", 0, "\"__metadata__\" in the header must be an object");
  check_bad(R"("q":{"dtype":"U8",)", 0, "not valid JSON at byte");
  check_bad("\"\xff\":{}", 0, "not valid JSON at byte");
  check_bad("\"q\":" + std::string(50'000, '[') + std::string(50'000, ']'), 0, "\"q\" in the header must be an object");
  check_bad("\"q\":{\"shape\":" + std::string(50'000, '[') + std::string(50'000, ']') + "}", 0, "whole numbers from 0");
  std::string many = "0";
  for (int i = 0; i < 64; ++i) many += ",0";
  check_bad(tensor("q", "U8", "[" + many + "]", "[0,0]"), 0, "tensor \"q\" has more than 64 dimensions");
  check_bad(tensor("a\\nb", "U8", "[1]", "[0,0]"), 0, "tensor \"a?b\": the shape (1,)");
}

TEST_CASE("safetensors: offsets and sizes, by name") {
  const std::string a = tensor("a", "U8", "[4]", "[0,4]");
  check_bad(tensor("q", "U8", "[2]", "[3,1]"), 4, "tensor \"q\": its data_offsets [3, 1] end before they begin");
  check_bad(tensor("q", "U8", "[9]", "[0,9]"), 4,
            "tensor \"q\": its data_offsets [0, 9] go beyond the 4 bytes of data");
  check_bad(tensor("q", "U8", "[1]", "[18446744073709551614,18446744073709551615]"), 4, "go beyond the 4 bytes");
  check_bad(tensor("q", "F32", "[2]", "[0,4]"), 4,
            "the shape (2,) of F32 needs 8 bytes, but its data_offsets [0, 4] hold 4");
  check_bad(tensor("q", "F32", "[4294967296,4294967296]", "[0,0]"), 0,
            "tensor \"q\": the shape (4294967296, 4294967296)");
  check_bad(tensor("q", "F32", "[4611686018427387905]", "[0,4]"), 4, "is larger than any memory");  // wraps to 4 bytes
  check_bad(a + "," + tensor("q", "U8", "[2]", "[3,5]"), 5,
            "tensors \"a\" and \"q\" overlap: the second begins at byte 3 of the data, before the first ends at 4");
  check_bad(tensor("q", "U8", "[2]", "[1,3]") + "," + a, 4, "tensors \"a\" and \"q\" overlap");
  check_bad(a + "," + tensor("q", "U8", "[2]", "[5,7]"), 7,
            "bytes 4 to 5 of the data, before tensor \"q\", belong to no");
  check_bad(tensor("q", "U8", "[2]", "[1,3]"), 3, "bytes 0 to 1 of the data, before tensor \"q\", belong to no tensor");
  check_bad(a, 7, "the last 3 bytes of the file belong to no tensor");
  check_bad("", 1, "the last byte of the file belongs to no tensor");
}

TEST_CASE("safetensors: of a file far larger than memory only what is asked for is read") {
  // 8 TiB of zeros that take no room on the disk; half a TiB where ThreadSanitizer leaves no more addresses.
  const std::uint64_t rows = kThreadSanitizer ? 131072 : 2097152, bytes = rows * 1048576 * 4;
  const std::string header =
      "{" + tensor("w", "F32", "[" + std::to_string(rows) + ",1048576]", "[0," + std::to_string(bytes) + "]") + "}";
  const Bytes start = file_of(header, 0);
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("qkvlab-large-" + std::to_string(std::rand()));
  REQUIRE(write_file_atomically(path, start).ok());
  std::error_code failed;
  std::filesystem::resize_file(path, start.size() + bytes, failed);
  const Result<TensorFile> file = TensorFile::open(path);
  std::filesystem::remove(path);  // what is open stays
  if (failed) {
    MESSAGE("not run: the file system of temporary files has no files of ", bytes, " bytes");
    return;
  }
  REQUIRE_MESSAGE(file.ok(), file.error().message);
  const std::vector<std::uint64_t> last = {rows - 1};
  const Result<Tensor> row = file.value().read("w", last);
  REQUIRE_MESSAGE(row.ok(), row.error().message);
  CHECK(row.value().values == std::vector<float>(1048576));
  const Result<Tensor> whole = file.value().read("w");
  REQUIRE_FALSE(whole.ok());
  CHECK(whole.error().code == ErrorCode::kBadInput);
  CHECK(whole.error().message == "array \"w\": it needs " + std::to_string(bytes) +
                                     " bytes of memory, which this machine does not have: read a part of it");
}

TEST_CASE("safetensors: told apart from text") {
  const auto looks = [](std::string_view text) { return looks_like_safetensors(as_bytes(text)); };
  CHECK(looks(std::string_view("\x7b\0\0\0\0\0\0\0{", 9)));
  CHECK(looks("\xff\xff\xff\xff\xff\xff\xff\xff{"));
  CHECK_FALSE(looks(std::string_view("\x02\0\0\0\0\0\0\0", 8)));
  CHECK_FALSE(looks("12345678{"));
  CHECK_FALSE(looks("{\"a\": [ {"));
}
