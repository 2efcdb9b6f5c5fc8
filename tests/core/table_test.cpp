#include "core/tensor_io/table.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/tensor_io/tensor_file.h"

using namespace qkv;

namespace {

using Texts = std::vector<std::string>;

Table table_of(std::string_view text) {
  CAPTURE(text);
  Result<Table> table = parse_table(text);
  REQUIRE_MESSAGE(table.ok(), table.error().message);
  REQUIRE(table.value().values.size() == table.value().rows * table.value().columns);
  return std::move(table).value();
}

void check_table(std::string_view text, std::size_t columns, const std::vector<double>& values,
                 const Texts& column_names = {}, const Texts& row_names = {}) {
  CAPTURE(text);
  const Table table = table_of(text);
  CHECK(table.columns == columns);
  CHECK(table.values == values);
  CHECK(table.column_names == column_names);
  CHECK(table.row_names == row_names);
}

void check_bad(std::string_view text, const std::string& words) {
  CAPTURE(text);
  const Result<Table> table = parse_table(text);
  REQUIRE_FALSE(table.ok());
  CHECK(table.error().code == ErrorCode::kBadInput);
  CHECK_MESSAGE(table.error().message.find(words) != std::string::npos, table.error().message);
}

}  // namespace

TEST_CASE("table: separators, line ends and blank lines") {
  const std::vector<double> values{1, 2.5, -3, 4};
  for (const std::string_view text : {"1,2.5\n-3,4\n", "1,2.5\r\n-3,4\r\n", "1;2.5\n-3;4", "1\t2.5\n-3\t4\n",
                                      "1 2.5\n-3 4\n", "  1   2.5  \r\n-3 4 \r\n", "\n1,2.5\n\n  \n-3,4\n\n",
                                      "\xef\xbb\xbf"
                                      "1,2.5\n-3,4\n",
                                      " 1 , 2.5 \n\"-3\",\"4\"\n",
                                      "1,2.5\n\xe2\x88\x92"
                                      "3,4"}) {
    check_table(text, 2, values);
  }
  check_table("1\n2\n3", 1, {1, 2, 3});
  check_table("1,2,3", 3, {1, 2, 3});
  check_table("7", 1, {7});
}

TEST_CASE("table: numbers that are not finite, small, large, and rounded once") {
  const Table table = table_of("nan,inf,-Inf\n1e300,1e-300,0.1\n");
  CHECK(std::isnan(table.values[0]));
  CHECK(table.values[1] == INFINITY);
  CHECK(table.values[2] == -INFINITY);
  CHECK(table.values[3] == 1e300);
  CHECK(table.values32[3] == INFINITY);
  CHECK(table.values32[4] == 0);
  CHECK(table.values[5] == 0.1);
  // Just above the middle of two float32: float64 is that middle, and would round down to the even one.
  CHECK(table_of("1.00000005960464477540").values32[0] == 0x1.000002p0f);
}

TEST_CASE("table: names of columns and rows") {
  check_table("a,b\n1,2\n", 2, {1, 2}, {"a", "b"});
  check_table("a\n1\n2\n", 1, {1, 2}, {"a"});
  check_table("the,1,2\ncat,3,4\n", 2, {1, 2, 3, 4}, {}, {"the", "cat"});
  check_table("token,a,b\nthe,1,2\ncat,3,4\n", 2, {1, 2, 3, 4}, {"a", "b"}, {"the", "cat"});
  check_table(",0,1\n0,5,6\n1,7,8\n", 2, {5, 6, 7, 8}, {"0", "1"}, {"0", "1"});  // as pandas writes it
  check_table(",the,;\nthe,5,6\n;,7,8\n", 2, {5, 6, 7, 8}, {"the", ";"}, {"the", ";"});
  check_table("\"a,b\";\"say \"\"x\"\"\"\n1;2\n", 2, {1, 2}, {"a,b", "say \"x\""});
  check_table("貓\t追\n1\t2\n", 2, {1, 2}, {"貓", "追"});
  check_table("\"two\nlines\",b\n1,2\n", 2, {1, 2}, {"two\nlines", "b"});
  check_table("the,1\n2024,2\ncat,3\n", 1, {1, 2, 3}, {}, {"the", "2024", "cat"});
}

TEST_CASE("table: what is wrong, and where") {
  check_bad("", "the table is empty");
  check_bad(" \n\n", "the table is empty");
  check_bad("a,b\n", "the table holds no numbers");
  check_bad("hello, world", "the table holds no numbers");
  check_bad("1,2\n3,x\n", "line 2, column 2: \"x\" is not a number");
  check_bad("1,2,3\n4,5x,6\n", "line 2, column 2: \"5x\" is not a number");
  check_bad("1,2x,3,4\n4,5,6,7\n", "line 1, column 2: \"2x\" is not a number");
  check_bad("1,2\n3x,4\n5,6\n", "line 2, column 1: \"3x\" is not a number");
  check_bad("1\nx\n", "line 2, column 1: \"x\" is not a number");
  check_bad("1,2\n3,\n", "line 2, column 2 is empty: write nan where a number is missing");
  check_bad("1,,3\n4,5,6\n", "line 1, column 2 is empty");
  check_bad("1,2\n3,4\n\n5\n", "line 4 has 1 cell but line 1 has 2");
  check_bad("1\t2\n3\n", "line 2 has 1 cell but line 1 has 2");
  check_bad("a,b\r\n1,2\r\n3,4,5\r\n", "line 3 has 3 cells but line 1 has 2");
  check_bad("\"x\ny\",b\n1,2\n3\n", "line 4 has 1 cell but line 1 has 2");
  check_bad("1;2\n3;4,5\n", "line 2, column 2: \"4,5\" is not a number; write the decimal point as \".\"");
  check_bad("a,\"b\n1,2\n", "line 1: a quote is opened and never closed");
  check_bad("a,b\n1,\"2\"3\n", "line 2: text follows a closing quote");
  check_bad("1,2\n1,1e400\n", "line 2, column 2: \"1e400\" is not a number");
  check_bad(std::string_view("1,2\0\n", 5), "zero bytes");
  check_bad("1,\xff\n", "not valid UTF-8");
}

TEST_CASE("table: a text file is a matrix with the file's name, its names are text") {
  const auto text = as_bytes("token,a,b\nthe,1,1e300\n");
  const Result<TensorFile> file = TensorFile::from_bytes({text.begin(), text.end()}, "q");
  REQUIRE_MESSAGE(file.ok(), file.error().message);
  REQUIRE(file.value().tensors().size() == 3);
  CHECK(file.value().tensors()[0].name == "q");
  CHECK(file.value().tensors()[0].dtype == "float64");
  CHECK(file.value().tensors()[0].shape == std::vector<std::uint64_t>{1, 2});
  CHECK(file.value().tensors()[1].name == "q.columns");
  CHECK(file.value().tensors()[1].is_text);
  CHECK(file.value().tensors()[2].name == "q.rows");
  CHECK(file.value().read_text("q.columns").value() == Texts{"a", "b"});
  CHECK(file.value().read_text("q.rows").value() == Texts{"the"});
  CHECK(file.value().read_float64("q").value().values == std::vector<double>{1, 1e300});
  CHECK(file.value().read("q").error().message == "array \"q\": number 1 of the array is beyond float32's range");
  const std::vector<std::uint64_t> cell = {0, 0};
  CHECK(file.value().read("q", cell).value().values == std::vector<float>{1});
  CHECK_FALSE(file.value().read("q.rows").ok());
}
