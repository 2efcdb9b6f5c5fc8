#include "core/tensor_io/npy.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/tensor_io/tensor_file.h"
#include "tests/core/npy_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

// The array of a .npy file, or what is wrong with its header or its kind.
template <class TensorType>
Result<TensorType> parsed(const Bytes& bytes,
                          Result<TensorType> (TensorFile::*read)(std::string_view, std::span<const std::uint64_t>,
                                                                 ReadProgress*) const) {
  const Result<NpyHeader> header = parse_npy_header(bytes, bytes.size());
  if (!header.ok()) return header.error();
  const Result<TensorFile> file = TensorFile::from_bytes(bytes, "x");
  if (!file.ok()) return file.error();
  return (file.value().*read)("x", {}, nullptr);
}
Result<Tensor> parse_npy(const Bytes& bytes) { return parsed(bytes, &TensorFile::read); }
Result<Tensor64> parse_npy_float64(const Bytes& bytes) { return parsed(bytes, &TensorFile::read_float64); }

void check_error(const Bytes& bytes, ErrorCode code, const std::string& words) {
  const Result<Tensor> tensor = parse_npy(bytes);
  REQUIRE_FALSE(tensor.ok());
  INFO(tensor.error().message);
  CHECK(tensor.error().code == code);
  CHECK(tensor.error().message.find(words) != std::string::npos);
  CHECK(tensor.error().message.find('\n') == std::string::npos);
  const Result<Tensor64> wide = parse_npy_float64(bytes);
  REQUIRE_FALSE(wide.ok());
  CHECK(wide.error().message == tensor.error().message);
}

void check_bad_header(const std::string& dict, const std::string& words) {
  CAPTURE(dict);
  const Bytes bytes = array_with(dict, 0);
  check_error(bytes, ErrorCode::kBadInput, words);
  const Result<NpyHeader> header = parse_npy_header(bytes, bytes.size());
  REQUIRE_FALSE(header.ok());
  CHECK(header.error().offset.value_or(bytes.size() + 1) <= bytes.size());
}

}  // namespace

TEST_CASE("npy: float32 is copied bit for bit") {
  const std::vector<float> values = {0.1f, -0.0f, std::numeric_limits<float>::denorm_min(), INFINITY, -1e30f, 2.f};
  const std::vector<std::uint64_t> shape = {2, 3};
  const Bytes bytes = npy_bytes(shape, values);
  CHECK((bytes.size() - 24) % 64 == 0);
  const Result<Tensor> tensor = parse_npy(bytes);
  REQUIRE(tensor.ok());
  CHECK(tensor.value().shape == shape);
  REQUIRE(tensor.value().values.size() == values.size());
  CHECK(std::memcmp(tensor.value().values.data(), values.data(), values.size() * sizeof(float)) == 0);
  const Result<Tensor64> wide = parse_npy_float64(bytes);
  REQUIRE(wide.ok());
  CHECK(wide.value().values[0] == double{0.1f});
}

TEST_CASE("npy: float64 is written bit for bit") {
  const std::vector<double> values = {0.1, -0.0, std::numeric_limits<double>::denorm_min(), INFINITY, -1e300};
  const Bytes bytes = npy_bytes(std::vector<std::uint64_t>{5}, values);
  const Result<Tensor64> tensor = parse_npy_float64(bytes);
  REQUIRE(tensor.ok());
  REQUIRE(tensor.value().values.size() == values.size());
  CHECK(std::memcmp(tensor.value().values.data(), values.data(), values.size() * sizeof(double)) == 0);
  CHECK(parse_npy_header(bytes, bytes.size()).value().descr == "<f8");
}

TEST_CASE("npy: float64 keeps its precision, or is rounded to float32") {
  const Bytes bytes = array_of<double>("'<f8'", {0.1, -2.5, std::nan(""), -INFINITY});
  const Result<Tensor64> wide = parse_npy_float64(bytes);
  REQUIRE(wide.ok());
  CHECK(wide.value().values[0] == 0.1);
  const Result<Tensor> tensor = parse_npy(bytes);
  REQUIRE(tensor.ok());
  CHECK(tensor.value().values[0] == 0.1f);
  CHECK(tensor.value().values[1] == -2.5f);
  CHECK(std::isnan(tensor.value().values[2]));
  CHECK(tensor.value().values[3] == -INFINITY);
}

TEST_CASE("npy: a float64 beyond float32's range is refused, not made infinite") {
  const Bytes bytes = array_of<double>("'<f8'", {1, 1e300});
  const Result<Tensor> tensor = parse_npy(bytes);
  REQUIRE_FALSE(tensor.ok());
  CHECK(tensor.error().code == ErrorCode::kBadInput);
  CHECK(tensor.error().message.find("number 1 of the array is beyond float32") != std::string::npos);
  CHECK(parse_npy_float64(bytes).ok());
}

TEST_CASE("npy: the header's forms") {
  const auto shape_of = [](const Bytes& bytes) {
    const Result<Tensor> tensor = parse_npy(bytes);
    REQUIRE_MESSAGE(tensor.ok(), tensor.error().message);
    return tensor.value().shape;
  };
  using Shape = std::vector<std::uint64_t>;
  CHECK(shape_of(array_with("{'shape':(2,3),'fortran_order':False,'descr':'<f4'}", 24)) == Shape{2, 3});
  CHECK(shape_of(array_with("{ \"shape\" : ( 2 , 3 , ) , 'fortran_order' : False , 'descr' : \"<f4\" , } ", 24)) ==
        Shape{2, 3});
  CHECK(shape_of(array_with(dict_of("'<f4'", "False", "(2L, 3L)"), 24)) == Shape{2, 3});
  CHECK(shape_of(array_with(dict_of("'<f4'", "False", "()"), 4)) == Shape{});
  CHECK(shape_of(array_with(dict_of("'<f4'", "False", "(5,)"), 20)) == Shape{5});
  CHECK(shape_of(array_with(dict_of("'<f4'", "False", "(0, 7)"), 0)) == Shape{0, 7});
  CHECK(shape_of(array_with(dict_of("'<f4'", "False", "(2,)"), 8, 2)) == Shape{2});
  CHECK(shape_of(array_with(dict_of("'<f4'", "False", "(2,)"), 8, 3)) == Shape{2});
}

TEST_CASE("npy: every length short of the whole is an error") {
  for (const int major : {1, 2, 3}) {
    const Bytes whole = array_with(dict_of("'<f4'", "False", "(2, 3)"), 24, major);
    REQUIRE(parse_npy(whole).ok());
    for (std::size_t length = 0; length < whole.size(); ++length) {
      const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      const Result<Tensor> tensor = parse_npy(part);
      REQUIRE_FALSE(tensor.ok());
      CHECK(tensor.error().code == ErrorCode::kBadInput);
      CHECK(tensor.error().offset.value_or(whole.size()) <= length);
    }
  }
}

TEST_CASE("npy: every single changed byte is read or refused, never worse") {
  const Bytes whole = array_with(dict_of("'<f4'", "False", "(2, 3)"), 24);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const int value : {0, 0x27, 0x28, 0x2c, 0x39, 0x4c, 0x5b, 0x5c, 0x7d, 0xff}) {
      Bytes changed = whole;
      changed[i] = static_cast<std::byte>(value);
      const Result<Tensor> tensor = parse_npy(changed);
      if (tensor.ok()) CHECK(tensor.value().values.size() == 6);
    }
  }
}

TEST_CASE("npy: magic and version") {
  check_error({}, ErrorCode::kBadInput, "ends within its magic");
  Bytes bytes = array_with(dict_of("'<f4'", "False", "(1,)"), 4);
  Bytes other = bytes;
  other[1] = std::byte{'X'};
  check_error(other, ErrorCode::kBadInput, "does not start with");
  other = bytes;
  other[6] = std::byte{4};
  check_error(other, ErrorCode::kBadInput, "npy version 4.0 is unknown");
  other = bytes;
  other[7] = std::byte{1};
  check_error(other, ErrorCode::kBadInput, "npy version 1.1 is unknown");
  other = array_with("", 0, 2);
  other[11] = std::byte{0x7f};
  check_error(other, ErrorCode::kBadInput, "the header claims");
}

TEST_CASE("npy: a header that breaks the format") {
  check_bad_header("", "\"{\" is missing");
  check_bad_header("[]", "\"{\" is missing");
  check_bad_header("{", "key in quotes is missing");
  check_bad_header("{descr: '<f4'}", "key in quotes is missing");
  check_bad_header("{'descr' '<f4'}", "\":\" is missing");
  check_bad_header("{'descr': '<f4' 'shape': (1,)}", "\",\" or \"}\" is missing");
  check_bad_header("{'descr': '<f4", "'descr' is neither text nor a list");
  check_bad_header("{'descr': [('a', '<f4')", "'descr' does not end");
  check_bad_header("{'descr': 4}", "'descr' is neither text nor a list");
  check_bad_header("{'descr': '<f4', 'descr': '<f4'}", "'descr' twice");
  check_bad_header("{'colour': 1}", "a key other than");
  check_bad_header("{'fortran_order': false}", "neither True nor False");
  check_bad_header("{'fortran_order': False, 'shape': (1,)}", "no 'descr'");
  check_bad_header("{'descr': '<f4', 'shape': (1,)}", "no 'fortran_order'");
  check_bad_header("{'descr': '<f4', 'fortran_order': False}", "no 'shape'");
  check_bad_header(dict_of("'<f4'", "False", "(1,)") + "x", "goes on after its dictionary");
}

TEST_CASE("npy: a shape that breaks the format") {
  const auto with_shape = [](const std::string& shape) { return dict_of("'<f4'", "False", shape); };
  check_bad_header(with_shape("[1]"), "no tuple");
  check_bad_header(with_shape("(1)"), "not a tuple");
  check_bad_header(with_shape("(1, -2)"), "negative dimension");
  check_bad_header(with_shape("(1, x)"), "whole numbers");
  check_bad_header(with_shape("(1, 2.5)"), "is missing in 'shape'");
  check_bad_header(with_shape("(1 2)"), "is missing in 'shape'");
  check_bad_header(with_shape("(,)"), "whole numbers");
  check_bad_header(with_shape("(18446744073709551616,)"), "beyond 64 bits");
  std::string many = "(";
  for (int i = 0; i < 65; ++i) many += "1,";
  check_bad_header(with_shape(many + ")"), "more than 64 dimensions");
}

TEST_CASE("npy: a product of the shape that overflows is refused, even where it wraps to a small number or to 0") {
  const auto with_shape = [](const std::string& shape) { return dict_of("'<f4'", "False", shape); };
  check_bad_header(with_shape("(4294967296, 4294967296)"), "larger than any memory");  // wraps to 0
  check_bad_header(with_shape("(4611686018427387905,)"), "larger than any memory");    // 4 bytes each: wraps to 4
  check_bad_header(with_shape("(0, 4294967296, 4294967296)"), "larger than any memory");
  check_bad_header(with_shape("(1000000000, 1000000000)"), "needs 4000000000000000000 bytes of data, but 0 follow");
}

TEST_CASE("npy: the data's size must be the shape's") {
  const std::string dict = dict_of("'<f4'", "False", "(2, 3)");
  check_error(array_with(dict, 23), ErrorCode::kBadInput, "needs 24 bytes of data, but 23 follow");
  check_error(array_with(dict, 25), ErrorCode::kBadInput, "needs 24 bytes of data, but 25 follow");
}

TEST_CASE("npy: arrays of other kinds are named, with what to do") {
  const auto check = [](const std::string& descr, std::size_t bytes, const std::string& words) {
    CAPTURE(descr);
    const Bytes array = array_with(dict_of(descr, "False", "(2,)"), bytes);
    check_error(array, ErrorCode::kUnsupported, words);
    const Result<TensorFile> file = TensorFile::from_bytes(array, "x");
    REQUIRE(file.ok());  // listed all the same
    CHECK(file.value().tensors()[0].problem.find(words) != std::string::npos);
    CHECK_FALSE(file.value().read_text("x").ok());
  };
  check("'<c8'", 16, "complex numbers (dtype <c8) are not read: save arr.real and arr.imag");
  check("'>c16'", 32, "complex numbers (dtype >c16) are not read");
  check("'|S5'", 10, "byte strings (dtype |S5) are not read: save text with arr.astype(\"U\")");
  check("'<U0'", 0, "dtype <U0 holds empty texts only");
  check("'<f16'", 32, "dtype <f16 is not read: save it as float32");
  check("'|V4'", 8, "dtype |V4 is not read");
  check("'>V2'", 4, "dtype >V2 is not read");
  check("'<M8[s]'", 16, "dtype <M8[s] is not read");
  check("'<i3'", 6, "dtype <i3 is not read");
  check("'|O'", 31, "pickled Python objects are never read: make numbers of them with arr.astype(\"float32\")");
  check("'O'", 31, "pickled Python objects are never read");
  check("[('a', '<f4'), ('b', '|O')]", 31, "pickled Python objects are never read");
  check("[('a', '<f4'), ('b]', '<i4')]", 16,
        "the structured dtype [('a', '<f4'), ('b]', '<i4')] is not read: save each field");
  check("'" + std::string(500, '\x01') + "'", 0, "dtype ????");
}

TEST_CASE("npy: the data's offset is known from the first twelve bytes") {
  for (const int major : {1, 2, 3}) {
    const Bytes bytes = array_with(dict_of("'<f4'", "False", "(1,)"), 4, major);
    CHECK(npy_data_offset(std::span(bytes).first(12)) == bytes.size() - 4);
    CHECK(npy_data_offset(std::span(bytes).first(9)) == 0);
  }
}

TEST_CASE("npy: shapes as NumPy prints them") {
  using Shape = std::vector<std::uint64_t>;
  CHECK(shape_text(Shape{}) == "()");
  CHECK(shape_text(Shape{3}) == "(3,)");
  CHECK(shape_text(Shape{3, 4}) == "(3, 4)");
}
