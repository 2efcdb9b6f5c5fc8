#include "core/tensor_io/npy.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/tensor_io/tensor_file.h"

using namespace qkv;

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

// An array whose header is `dict`, padded as NumPy pads it, followed by `data_bytes` zero bytes.
Bytes array_with(const std::string& dict, std::size_t data_bytes, int major = 1) {
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  std::string text = "\x93NUMPY";
  text += static_cast<char>(major);
  text += '\0';
  for (std::size_t i = 0; i < length_bytes; ++i) text += static_cast<char>(dict.size() >> (8 * i) & 0xff);
  text += dict;
  text.append(data_bytes, '\0');
  const auto bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

std::string dict_of(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }  \n";
}

template <class T>
Bytes array_of(const std::string& descr, const std::vector<T>& values) {
  Bytes bytes = array_with(dict_of(descr, "False", "(" + std::to_string(values.size()) + ",)"), 0);
  const auto data = std::as_bytes(std::span(values));
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}

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
