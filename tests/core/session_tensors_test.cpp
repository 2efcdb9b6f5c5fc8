#include "core/session/session_tensors.h"

#include <doctest/doctest.h>

#include <string>

#include "core/session/session_file.h"
#include "tests/core/session_test_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

TensorFile npz_of(const std::vector<NamedArray>& arrays) {
  Result<Bytes> bytes = npz_bytes(arrays);
  REQUIRE_MESSAGE(bytes.ok(), bytes.error().message);
  Result<TensorFile> file = TensorFile::from_bytes(std::move(bytes).value(), "x");
  REQUIRE(file.ok());
  return std::move(file).value();
}

NamedArray array_of(const std::string& name, std::vector<std::uint64_t> shape) {
  std::uint64_t count = 1;
  for (const std::uint64_t dimension : shape) count *= dimension;
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  return {name, std::move(shape), std::move(values)};
}

void check_bad_arrays(const std::vector<NamedArray>& arrays, const std::string& words) {
  const Result<Session> session = session_from_arrays(npz_of(arrays), "t");
  REQUIRE_FALSE(session.ok());
  INFO(session.error().message);
  CHECK(session.error().code == ErrorCode::kBadInput);
  CHECK(session.error().message.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("tensors: NumPy's files open") {
  const Result<Session> layer = open_any(QKV_TEST_DATA "/multi_head_layer.npz");
  REQUIRE_MESSAGE(layer.ok(), layer.error().message);
  CHECK(layer.value().title == "multi_head_layer");
  const auto& source = std::get<ProjectedSource>(layer.value().problem.source);
  CHECK(source.heads == 4);
  CHECK(source.kv_heads == 4);
  CHECK(source.bq->cols() == 32);
  CHECK(layer.value().problem.wo->rows() == 32);
  CHECK(layer.value().problem.bo->rows() == 1);
  CHECK(layer.value().tokens.size() == 9);
  CHECK(layer.value().tokens[8] == "8");

  const Result<Session> plain = open_any(QKV_TEST_DATA "/sdpa/plain.npz");
  REQUIRE_MESSAGE(plain.ok(), plain.error().message);
  const auto& direct = std::get<DirectSource>(plain.value().problem.source);
  CHECK(direct.q.size() == 2);
  CHECK(direct.q[1].rows() == 7);
  CHECK(direct.q[1].cols() == 8);

  const Result<Session> cross = open_any(QKV_TEST_DATA "/sdpa/cross.npz");
  REQUIRE(cross.ok());
  CHECK(cross.value().tokens.size() == 4);
  REQUIRE(cross.value().key_tokens);
  CHECK(cross.value().key_tokens->size() == 9);
}

TEST_CASE("tensors: inputs by name and shape") {
  const Result<Session> flat = session_from_arrays(
      npz_of({array_of("q", {2, 3}), array_of("k", {2, 3}), array_of("v", {2, 1}), array_of("ids", {7, 7, 7})}), "t");
  REQUIRE_MESSAGE(flat.ok(), flat.error().message);
  CHECK(flat.value().title == "t");
  CHECK(std::get<DirectSource>(flat.value().problem.source).q[0]->coeff(1, 2) == 5);

  const Result<Session> projected =
      session_from_arrays(npz_of({array_of("x", {2, 3}), array_of("wq", {3, 4}), array_of("wk", {3, 4}),
                                  array_of("wv", {3, 2}), array_of("bq", {1, 4}), array_of("bk", {4})}),
                          "t");
  REQUIRE_MESSAGE(projected.ok(), projected.error().message);
  const auto& source = std::get<ProjectedSource>(projected.value().problem.source);
  CHECK(source.heads == 1);
  CHECK(source.bq->cols() == 4);
  CHECK(source.bk->rows() == 1);
  CHECK_FALSE(source.bv);
}

TEST_CASE("tensors: what is missing or misshapen is named") {
  check_bad_arrays(
      {array_of("q", {2, 3}), array_of("foo", {5})},
      "the inputs are arrays named q, k and v (or x, wq, wk and wv, or attn alone), but k and v are missing: the file "
      "has q (2, 3) and foo (5,)");
  check_bad_arrays({array_of("x", {2, 3}), array_of("wq", {5, 5}), array_of("wk", {5, 5})},
                   "the inputs are arrays named x, wq, wk and wv, but wv is missing");
  std::vector<NamedArray> many;
  for (int i = 0; i < 30; ++i) many.push_back(array_of("a" + std::to_string(i), {1}));
  check_bad_arrays(many, "a7 (1,) and 22 more");
  const NamedArray k = array_of("k", {2, 3});
  const NamedArray v = array_of("v", {2, 3});
  check_bad_arrays({array_of("q", {6}), k, v},
                   "\"q\" has the shape (6,): it must be [heads, tokens, d] or [tokens, d]");
  check_bad_arrays({array_of("q", {1, 1, 1, 1, 2, 3}), k, v}, "\"q\" has the shape (1, 1, 1, 1, 2, 3)");
  check_bad_arrays({array_of("q", {0, 3}), k, v}, "\"q\" has the shape (0, 3): it is empty");
  check_bad_arrays({array_of("q", {300, 300, 3}), k, v}, "q (300, 300, 3) as HND has 300 heads: at most 256");
  check_bad_arrays({array_of("q", {2, 4}), k, v}, "k (2, 3) as ND has 3 columns (d_k), but q (2, 4) as ND has 4");
  check_bad_arrays({array_of("q", {1, 2, 6}), array_of("k", {1, 2, 3}), array_of("v", {1, 2, 3})},
                   "q (1, 2, 6) as HND has 6: where several heads lie side by side, say how many q has (heads)");
  check_bad_arrays({array_of("q", {2, 3}), k, v, array_of("wo", {3})},
                   "\"wo\" has the shape (3,), but wo as IO has 2 axes");
  check_bad_arrays({array_of("q", {2, 3}), k, v, array_of("wo", {3, 2}), array_of("bo", {2, 1})},
                   "\"bo\" has the shape (2, 1), but bo as 1O needs 1 on axis 0");
  check_bad_arrays({array_of("q", {200000, 1}), array_of("k", {200000, 1}), array_of("v", {200000, 1})},
                   "200000 tokens are too many: at most 131072");
}

TEST_CASE("tensors: integers are numbers") {
  const NamedArray bytes = {"q", {2, 3}, std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6}};
  const Result<Session> session =
      session_from_arrays(npz_of({bytes, array_of("k", {2, 3}), array_of("v", {2, 3})}), "t");
  REQUIRE_MESSAGE(session.ok(), session.error().message);
  CHECK(std::get<DirectSource>(session.value().problem.source).q[0].get()(1, 2) == 6);
}

TEST_CASE("open_any: files of other kinds say what was seen and what is accepted") {
  const TempFolder folder;
  const auto check = [&](std::string_view content, ErrorCode code, const std::string& words) {
    const Result<Session> session = open_any(folder.write("file.bin", content));
    REQUIRE_FALSE(session.ok());
    INFO(session.error().message);
    CHECK(session.error().code == code);
    CHECK(session.error().message.find(words) != std::string::npos);
    CHECK(session.error().message.find("a session is a JSON object, tensors are .npz, .npy, ") != std::string::npos);
  };
  check("", ErrorCode::kBadInput, "the file is empty");
  check("hello\n", ErrorCode::kBadInput, "the file is plain text");
  check("[1, 2]", ErrorCode::kBadInput, "the file is a JSON array");
  check("\x89HDF\r\n", ErrorCode::kUnsupported, "HDF5 files are not read");
  check("\x80\x04\x95 pickle bytes", ErrorCode::kUnsupported, "pickled Python objects are never read");
  check(std::string("\x7f"
                    "ELF\0\1\2",
                    7),
        ErrorCode::kBadInput, "the file is of an unknown kind");

  const std::vector<float> values = {1, 2};
  const std::vector<std::uint64_t> shape = {1, 2};
  const Result<Session> single = open_any(folder.write("q.npy", npy_bytes(shape, values)));
  REQUIRE_FALSE(single.ok());
  CHECK(single.error().message.find("k and v are missing: the file has q (1, 2)") != std::string::npos);
  const Result<Session> table = open_any(folder.write("q.csv", "a,b\n1,2\n"));
  REQUIRE_FALSE(table.ok());
  CHECK_MESSAGE(
      table.error().message.find("k and v are missing: the file has q (1, 2) and q.columns (2,)") != std::string::npos,
      table.error().message);
}

TEST_CASE("open_any: q, k and v of a .safetensors file, also where its length reads like JSON") {
  const TempFolder folder;
  std::string header;
  std::string data;
  for (const char name : {'q', 'k', 'v'}) {
    const std::string offsets = std::to_string(data.size()) + "," + std::to_string(data.size() + 4);
    header += (header.empty() ? "{\"" : ",\"") + std::string(1, name) +
              R"(":{"dtype":"F32","shape":[1,1],"data_offsets":[)" + offsets + "]}";
    data += std::string("\0\0\x80\x3f", 4);
  }
  header += '}';
  // Lengths whose first bytes are " {", "{ " and "{".
  for (const std::size_t length :
       {std::size_t{0x7b} * 256 + 0x20, std::size_t{0x20} * 256 + 0x7b, std::size_t{0x17b}}) {
    header.resize(length, ' ');
    std::string bytes(8, '\0');
    bytes[0] = static_cast<char>(length & 0xff);
    bytes[1] = static_cast<char>(length >> 8);
    const Result<Session> session = open_any(folder.write("a.bin", bytes + header + data));
    REQUIRE_MESSAGE(session.ok(), session.error().message);
    CHECK(std::get<DirectSource>(session.value().problem.source).v[0].get()(0, 0) == 1.0f);
  }
}

TEST_CASE("arrays_of: every tensor, by name and shape, and the file opens again") {
  const Session session = projected_session();
  const Result<Trace> trace = forward(session.problem);
  REQUIRE(trace.ok());
  const std::vector<NamedArray> arrays = arrays_of(trace.value());
  const std::vector<std::pair<std::string, std::vector<std::uint64_t>>> expected = {
      {"x", {3, 4}},         {"wq", {4, 6}},   {"wk", {4, 3}},      {"wv", {4, 2}},           {"bq", {6}},
      {"bk", {3}},           {"q", {2, 3, 3}}, {"k", {1, 3, 3}},    {"v", {1, 3, 2}},         {"scores", {2, 3, 3}},
      {"scaled", {2, 3, 3}}, {"keep", {3, 3}}, {"attn", {2, 3, 3}}, {"heads_out", {2, 3, 2}}, {"concat", {3, 4}},
      {"wo", {4, 5}},        {"bo", {5}},      {"out", {3, 5}}};
  REQUIRE(arrays.size() == expected.size());
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    CHECK(arrays[i].name == expected[i].first);
    CHECK(arrays[i].shape == expected[i].second);
    CHECK(arrays[i].values.index() == (arrays[i].name == "keep" ? 1 : 0));
  }
  const auto& attn = std::get<0>(arrays[12].values);
  CHECK(attn[9 + 3] == trace.value().heads[1].attn(1, 0));

  const Result<Session> again = session_from_arrays(npz_of(arrays), "t");
  REQUIRE_MESSAGE(again.ok(), again.error().message);
  Session compared = session;
  compared.problem.options = {};
  compared.tokens = {"0", "1", "2"};
  compared.title = "t";
  compared.note.clear();
  compared.split = TokenSplit::kWhiteSpace;
  compared.view = {};
  check_same(compared, again.value());
}

TEST_CASE("arrays_of: what ALiBi and a bias add, where they are on") {
  Session session = projected_session();
  session.problem.options.alibi = true;
  session.problem.options.bias = matrix_of(3, 3, -2);
  const Result<Trace> trace = forward(session.problem);
  REQUIRE(trace.ok());
  const TensorFile file = npz_of(arrays_of(trace.value()));
  const Result<Tensor> alibi = file.read("alibi"), bias = file.read("bias");
  REQUIRE(alibi.ok());
  REQUIRE(bias.ok());
  CHECK(alibi.value().shape == std::vector<std::uint64_t>{2, 3, 3});
  CHECK(alibi.value().values[9 + 2] == -2 * 0x1p-8f);
  CHECK(bias.value().shape == std::vector<std::uint64_t>{3, 3});
  CHECK(bias.value().values[4] == (*session.problem.options.bias)->operator()(1, 1));
}

TEST_CASE("arrays_of: no out without an output projection") {
  const Result<Trace> trace = forward(worked_example().problem);
  REQUIRE(trace.ok());
  std::vector<std::string> names;
  for (const NamedArray& array : arrays_of(trace.value())) names.push_back(array.name);
  CHECK(names == std::vector<std::string>{"q", "k", "v", "scores", "scaled", "keep", "attn", "heads_out", "concat"});
}
