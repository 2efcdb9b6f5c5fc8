// What the elements of .npy arrays become: numbers of every type, parts, texts.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/tensor_io/tensor_file.h"
#include "tests/core/npy_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

// Six elements stored as `bits`, low byte first or last.
template <class Bits>
Bytes six(const std::string& descr, const std::array<Bits, 6>& bits, const std::string& shape, bool fortran = false) {
  Bytes bytes = array_with(dict_of("'" + descr + "'", fortran ? "True" : "False", shape), 0);
  for (const Bits value : bits) {
    for (std::size_t i = 0; i < sizeof value; ++i) {
      const std::size_t byte = descr[0] == '>' ? sizeof value - 1 - i : i;
      bytes.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * byte)));
    }
  }
  return bytes;
}

void check_values(const Bytes& bytes, const std::string& dtype, const std::vector<double>& expected) {
  CAPTURE(dtype);
  const Result<TensorFile> file = TensorFile::from_bytes(bytes, "x");
  REQUIRE_MESSAGE(file.ok(), file.error().message);
  const TensorInfo& info = file.value().tensors()[0];
  CHECK(info.dtype == dtype);
  CHECK_MESSAGE(info.problem.empty(), info.problem);
  const Result<Tensor64> wide = file.value().read_float64("x");
  REQUIRE_MESSAGE(wide.ok(), wide.error().message);
  CHECK(wide.value().values == expected);
  const Result<Tensor> narrow = file.value().read("x");
  REQUIRE_MESSAGE(narrow.ok(), narrow.error().message);
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(narrow.value().values[i] == static_cast<float>(expected[i]));
}

}  // namespace

TEST_CASE("npy: numbers of every type in both byte orders") {
  const std::string shape = "(6,)";
  for (const std::string order : {"<", ">", "="}) {
    CAPTURE(order);
    const std::array<std::uint16_t, 6> halves{0x3c00, 0x8000, 0x7bff, 0x0001, 0xfc00, 0x3555};
    check_values(six(order + "f2", halves, shape), "float16", {1, -0.0, 65504, 0x1p-24, -INFINITY, 0x1.554p-2});
    const std::array<std::uint32_t, 6> singles{0x3f800000, 0x80000000, 0x7f7fffff, 1, 0xff800000, 0x3dcccccd};
    check_values(six(order + "f4", singles, shape), "float32", {1, -0.0, 0x1.fffffep127, 0x1p-149, -INFINITY, 0.1f});
    const std::array<std::uint64_t, 6> doubles{0x3ff0000000000000, 0x8000000000000000, 0x3fb999999999999a, 1,
                                               0xfff0000000000000, 0xc008000000000000};
    check_values(six(order + "f8", doubles, shape), "float64", {1, -0.0, 0.1, 0x1p-1074, -INFINITY, -3});
    check_values(six<std::int8_t>(order + "i1", {0, 1, -1, 127, -128, 5}, shape), "int8", {0, 1, -1, 127, -128, 5});
    check_values(six<std::int16_t>(order + "i2", {0, 1, -1, 32767, -32768, 258}, shape), "int16",
                 {0, 1, -1, 32767, -32768, 258});
    check_values(six<std::int32_t>(order + "i4", {0, 1, -1, INT32_MAX, INT32_MIN, 16777217}, shape), "int32",
                 {0, 1, -1, 0x1.fffffffcp30, -0x1p31, 16777217});
    check_values(six<std::int64_t>(order + "i8", {0, 1, -1, INT64_MAX, INT64_MIN, 9007199254740993}, shape), "int64",
                 {0, 1, -1, 0x1p63, -0x1p63, 9007199254740992});
    check_values(six<std::uint8_t>(order + "u1", {0, 1, 2, 255, 128, 5}, shape), "uint8", {0, 1, 2, 255, 128, 5});
    check_values(six<std::uint16_t>(order + "u2", {0, 1, 2, 65535, 256, 5}, shape), "uint16", {0, 1, 2, 65535, 256, 5});
    check_values(six<std::uint32_t>(order + "u4", {0, 1, 2, UINT32_MAX, 256, 5}, shape), "uint32",
                 {0, 1, 2, 4294967295, 256, 5});
    check_values(six<std::uint64_t>(order + "u8", {0, 1, 2, UINT64_MAX, 256, 5}, shape), "uint64",
                 {0, 1, 2, 0x1p64, 256, 5});
  }
  check_values(six<std::uint8_t>("|b1", {0, 1, 1, 0, 255, 2}, shape), "bool", {0, 1, 1, 0, 1, 1});
}

TEST_CASE("npy: bfloat16 as ml_dtypes saves it, or uint16 where that is asked for") {
  const std::array<std::uint16_t, 6> bits{0x3f80, 0x8000, 0x7f7f, 0x0001, 0xff80, 0x3e4d};
  const std::vector<double> values{1, -0.0, 0x1.fep127, 0x1p-133, -INFINITY, 0x1.9ap-3};
  check_values(six("|V2", bits, "(6,)"), "bfloat16", values);
  check_values(six("<V2", bits, "(6,)"), "bfloat16", values);
  for (const std::string descr : {"<u2", ">u2"}) {
    const Result<TensorFile> file = TensorFile::from_bytes(six(descr, bits, "(6,)"), "x", {.bfloat16 = {"x"}});
    REQUIRE_MESSAGE(file.ok(), file.error().message);
    CHECK(file.value().tensors()[0].dtype == "bfloat16");
    CHECK(file.value().read_float64("x").value().values == values);
  }
  CHECK(TensorFile::from_bytes(six("|V2", bits, "(6,)"), "x", {.bfloat16 = {"x"}}).ok());
  const Result<TensorFile> other = TensorFile::from_bytes(six("<i2", bits, "(6,)"), "x", {.bfloat16 = {"x"}});
  REQUIRE_FALSE(other.ok());
  CHECK(other.error().message == "array \"x\" cannot be read as bfloat16: it holds int16, not uint16");
  const Result<TensorFile> none = TensorFile::from_bytes(six("<u2", bits, "(6,)"), "x", {.bfloat16 = {"y"}});
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().message == "there is no array \"y\" to read as bfloat16");
}

TEST_CASE("npy: Fortran order, and parts of an array") {
  using Shape = std::vector<std::uint64_t>;
  const auto check_part = [](const TensorFile& file, const Shape& leading, const Shape& shape,
                             const std::vector<float>& values) {
    const Result<Tensor> part = file.read("x", leading);
    REQUIRE_MESSAGE(part.ok(), part.error().message);
    CHECK(part.value().shape == shape);
    CHECK(part.value().values == values);
    const Result<Tensor64> wide = file.read_float64("x", leading);
    REQUIRE(wide.ok());
    CHECK(std::equal(values.begin(), values.end(), wide.value().values.begin(), wide.value().values.end()));
  };
  const std::array<std::uint8_t, 6> in_c_order{0, 1, 2, 3, 4, 5}, in_fortran_order{0, 3, 1, 4, 2, 5};
  for (const bool fortran : {false, true}) {
    CAPTURE(fortran);
    const Bytes bytes = six("|u1", fortran ? in_fortran_order : in_c_order, "(2, 3)", fortran);
    const Result<TensorFile> file = TensorFile::from_bytes(bytes, "x");
    REQUIRE(file.ok());
    check_part(file.value(), {}, {2, 3}, {0, 1, 2, 3, 4, 5});
    check_part(file.value(), {1}, {3}, {3, 4, 5});
    check_part(file.value(), {1, 2}, {}, {5});
    const auto refused = [&](const Shape& leading, const std::string& words) {
      const Result<Tensor> part = file.value().read("x", leading);
      REQUIRE_FALSE(part.ok());
      CHECK(part.error().code == ErrorCode::kBadInput);
      CHECK(part.error().message == "array \"x\": its shape is (2, 3): " + words);
    };
    refused({2}, "there is no index 2 on axis 0");
    refused({1, 3}, "there is no index 3 on axis 1");
    refused({1, 2, 0}, "3 indices are too many");
  }
  // [2, 1, 3] with the first axis fastest.
  const Result<TensorFile> file = TensorFile::from_bytes(six("|u1", in_fortran_order, "(2, 1, 3)", true), "x");
  REQUIRE(file.ok());
  check_part(file.value(), {}, {2, 1, 3}, {0, 1, 2, 3, 4, 5});
  check_part(file.value(), {1, 0}, {3}, {3, 4, 5});
  const Result<TensorFile> empty = TensorFile::from_bytes(array_with(dict_of("'<f4'", "True", "(0, 3)"), 0), "x");
  REQUIRE(empty.ok());
  check_part(empty.value(), {}, {0, 3}, {});
  const Result<TensorFile> thin = TensorFile::from_bytes(array_with(dict_of("'<f4'", "False", "(3, 0)"), 0), "x");
  REQUIRE(thin.ok());
  check_part(thin.value(), {2}, {0}, {});
}

TEST_CASE("npy: texts") {
  const auto texts = [](const std::string& descr, const std::u32string& characters, const std::string& shape,
                        bool fortran) {
    Bytes bytes = array_with(dict_of("'" + descr + "'", fortran ? "True" : "False", shape), 0);
    for (const char32_t c : characters) {
      for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<std::byte>(c >> 8 * (descr[0] == '>' ? 3 - i : i)));
    }
    const Result<TensorFile> file = TensorFile::from_bytes(bytes, "x");
    REQUIRE_MESSAGE(file.ok(), file.error().message);
    CHECK(file.value().tensors()[0].is_text);
    CHECK(file.value().tensors()[0].dtype == "str");
    const Result<Tensor> numbers = file.value().read("x");
    REQUIRE_FALSE(numbers.ok());
    CHECK(numbers.error().message == "array \"x\": it holds text, not numbers");
    const Result<std::vector<std::string>> read = file.value().read_text("x");
    REQUIRE_MESSAGE(read.ok(), read.error().message);
    return read.value();
  };
  using Texts = std::vector<std::string>;
  const std::u32string two(U"貓\0a b😀\0", 6);
  CHECK(texts("<U3", two, "(2,)", false) == Texts{std::string("貓\0a", 5), " b😀"});
  CHECK(texts(">U2", U"abcdef", "(3,)", false) == Texts{"ab", "cd", "ef"});
  CHECK(texts("<U1", U"abcdef", "(2, 3)", true) == Texts{"a", "c", "e", "b", "d", "f"});
  const std::u32string not_characters{0xd800, 0x110000};
  CHECK(texts("<U1", not_characters, "(2,)", false) == Texts{"\ufffd", "\ufffd"});
  const Result<TensorFile> numbers = TensorFile::from_bytes(six<std::uint8_t>("|u1", {}, "(6,)"), "x");
  REQUIRE(numbers.ok());
  CHECK(numbers.value().read_text("x").error().message == "array \"x\": it holds no text");
}
