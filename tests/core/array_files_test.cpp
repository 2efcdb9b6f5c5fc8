// Arrays as .npy and .csv.
#include "core/session/array_files.h"
#include "core/session/session_tensors.h"
#include "core/tensor_io/tensor_file.h"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>

using namespace qkv;

namespace {

std::string text_of(const NamedArray& array) {
  const Result<Bytes> bytes = array_file(ArrayFormat::kCsv, {array});
  REQUIRE_MESSAGE(bytes.ok(), bytes.error().message);
  return std::string(as_text(bytes.value()));
}

void check_refused(ArrayFormat format, const std::vector<NamedArray>& arrays, const std::string& words) {
  const Result<Bytes> bytes = array_file(format, arrays);
  REQUIRE_FALSE(bytes.ok());
  CHECK(bytes.error().code == ErrorCode::kUsage);
  CHECK_MESSAGE(bytes.error().message.find(words) != std::string::npos, bytes.error().message);
}

}  // namespace

TEST_CASE("array files: the name says the format") {
  CHECK(array_format("a/b.npy") == ArrayFormat::kNpy);
  CHECK(array_format("b.CSV") == ArrayFormat::kCsv);
  CHECK(array_format("b.npz") == ArrayFormat::kNpz);
  CHECK(array_format("csv") == ArrayFormat::kNpz);
}

TEST_CASE("array files: a matrix as text is numbers alone, a row to a line") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  CHECK(text_of({"a", {2, 3}, std::vector<float>{1, -0.0F, 0.1F, kNan, kInf, -kInf}}) == "1,-0.0,0.1\nnan,inf,-inf\n");
  CHECK(text_of({"a", {2}, std::vector<float>{1, 2}}) == "1,2\n");
  CHECK(text_of({"a", {2, 1}, std::vector<std::uint8_t>{1, 0}}) == "1\n0\n");
  CHECK(text_of({"a", {1, 1}, std::vector<double>{1.0 / 3}}) == "0.3333333333333333\n");
}

TEST_CASE("array files: one head is cut out of all") {
  const NamedArray all{"attn", {2, 1, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}};
  const NamedArray second = head_of(all, 1);
  CHECK(second.shape == std::vector<std::uint64_t>{1, 3});
  CHECK(std::get<std::vector<float>>(second.values) == std::vector<float>{4, 5, 6});
  CHECK(text_of(second) == "4,5,6\n");
  check_refused(ArrayFormat::kCsv, {all}, "(2, 1, 3)");
  check_refused(ArrayFormat::kCsv, {second, second}, "one array");
  check_refused(ArrayFormat::kNpy, {}, "there are 0");
}

TEST_CASE("array files: an .npy reads back to the same bits") {
  const std::vector<float> values = {1, 0.1F, -0.0F, 1e-45F};
  const Result<Bytes> bytes = array_file(ArrayFormat::kNpy, {{"a", {2, 2}, values}});
  REQUIRE(bytes.ok());
  const Result<TensorFile> file = TensorFile::from_bytes(bytes.value(), "a");
  REQUIRE(file.ok());
  const Result<Tensor> back = file.value().read("a");
  REQUIRE(back.ok());
  CHECK(back.value().shape == std::vector<std::uint64_t>{2, 2});
  CHECK(back.value().values == values);
}

TEST_CASE("a .csv file with names reads back to the same numbers and the same tokens") {
  Session session = worked_example();
  session.tokens = {"貓, 追", " \"a\" ", "2024", "", "#tag", "two\nlines", "x;y\tz"};
  const auto count = static_cast<Index>(session.tokens.size());
  std::vector<float> values;
  for (Index i = 0; i < count * count; ++i) values.push_back(0.1f * static_cast<float>(i * i) - 1e-9f);
  values[3] = std::numeric_limits<float>::quiet_NaN();
  const TableNames names = names_of(session, MatrixKind::kAttn, count, count);
  CHECK(names.rows == session.tokens);
  CHECK(names.columns == session.tokens);
  const Result<Bytes> bytes = array_file(ArrayFormat::kCsv, {{"attn", {7, 7}, values}}, &names);
  REQUIRE(bytes.ok());
  const Result<TensorFile> file = TensorFile::from_bytes(bytes.value(), "attn");
  REQUIRE_MESSAGE(file.ok(), file.error().message);
  const Result<Tensor> back = file.value().read("attn");
  REQUIRE(back.ok());
  CHECK(back.value().shape == std::vector<std::uint64_t>{7, 7});
  CHECK(std::memcmp(back.value().values.data(), values.data(), values.size() * sizeof(float)) == 0);
  CHECK(file.value().read_text("attn.rows").value() == session.tokens);
  CHECK(file.value().read_text("attn.columns").value() == session.tokens);
  const Result<Session> opened = session_from_arrays(file.value(), "attn");
  REQUIRE_MESSAGE(opened.ok(), opened.error().message);
  CHECK(opened.value().tokens == session.tokens);
  CHECK_FALSE(opened.value().key_tokens);
}

TEST_CASE("names of a .csv: one row, one column, axes without tokens, and formats without room") {
  Session session = worked_example();
  session.key_tokens = std::vector<std::string>{"k"};
  const TableNames column = names_of(session, MatrixKind::kAttn, 3, 1);
  const std::vector<float> three = {1, 2, 3};
  const Result<Bytes> bytes = array_file(ArrayFormat::kCsv, {{"attn", {3, 1}, three}}, &column);
  REQUIRE(bytes.ok());
  CHECK(as_text(bytes.value()) == ",k\n貓,1\n追,2\n老鼠,3\n");
  const TensorFile file = TensorFile::from_bytes(bytes.value(), "attn").value();
  CHECK(file.read("attn").value().values == three);
  CHECK(file.read_text("attn.columns").value() == std::vector<std::string>{"k"});

  const TableNames row = names_of(session, MatrixKind::kV, 1, 3);
  const Result<Bytes> of_v = array_file(ArrayFormat::kCsv, {{"v", {1, 3}, three}}, &row);
  REQUIRE(of_v.ok());
  CHECK(as_text(of_v.value()) == ",1,2,3\nk,1,2,3\n");
  CHECK(TensorFile::from_bytes(of_v.value(), "v").value().read("v").value().values == three);

  for (const ArrayFormat format : {ArrayFormat::kNpy, ArrayFormat::kNpz}) {
    const Result<Bytes> refused = array_file(format, {{"v", {1, 3}, three}}, &row);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == ErrorCode::kUsage);
  }
}
