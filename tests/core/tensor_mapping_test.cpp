#include "core/session/tensor_mapping.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "core/session/tensor_names.h"
#include "tests/core/mapping_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

// Three heads of five tokens, d = 4; keys and values of one head for every three, with the same numbers in each layout.
constexpr std::uint64_t kH = 3, kN = 5, kD = 4;
constexpr int kQ = 1, kK = 2, kV = 3;

NamedArray heads_first(const std::string& name, int salt, std::uint64_t heads = kH) {
  return array_of(name, {heads, kN, kD}, [=](const At& at) { return number(salt, at[0], at[1], at[2]); });
}
std::vector<NamedArray> plain_qkv() { return {heads_first("q", kQ), heads_first("k", kK), heads_first("v", kV)}; }
NamedArray weights_beside() { return any_array("attn", {kH, kN, kN}, 9); }

}  // namespace

TEST_CASE("mapping: the same q, k and v in every layout are the same session") {
  const Session expected = opened(plain_qkv());
  REQUIRE(std::get<DirectSource>(expected.problem.source).q.size() == kH);
  REQUIRE(std::get<DirectSource>(expected.problem.source).q[2]->coeff(4, 3) == number(kQ, 2, 4, 3));

  struct Case {
    std::string layout;
    Shape shape;
    std::function<float(int, const At&)> cell;
    int heads = 0;  // that have to be given
  };
  const Case cases[] = {
      {"HND", {kH, kN, kD}, [](int s, const At& at) { return number(s, at[0], at[1], at[2]); }},
      {"NHD", {kN, kH, kD}, [](int s, const At& at) { return number(s, at[1], at[0], at[2]); }},
      {"HDN", {kH, kD, kN}, [](int s, const At& at) { return number(s, at[0], at[2], at[1]); }},
      {"BHND", {2, kH, kN, kD}, [](int s, const At& at) { return number(s + (at[0] ? 0 : 50), at[1], at[2], at[3]); }},
      {"BNHD", {2, kN, kH, kD}, [](int s, const At& at) { return number(s + (at[0] ? 0 : 50), at[2], at[1], at[3]); }},
      {"NBHD", {kN, 2, kH, kD}, [](int s, const At& at) { return number(s + (at[1] ? 0 : 50), at[2], at[0], at[3]); }},
      {"N(HD)", {kN, kH * kD}, [](int s, const At& at) { return number(s, at[1] / kD, at[0], at[1] % kD); }, kH},
      {"N(DH)", {kN, kH * kD}, [](int s, const At& at) { return number(s, at[1] % kH, at[0], at[1] / kH); }, kH},
      {"BN(HD)",
       {2, kN, kH * kD},
       [](int s, const At& at) { return number(s + (at[0] ? 0 : 50), at[2] / kD, at[1], at[2] % kD); },
       kH},
      {"LBHND",
       {2, 2, kH, kN, kD},
       [](int s, const At& at) { return number(s + (at[0] && at[1] ? 0 : 50), at[2], at[3], at[4]); }},
      {"1HND", {1, kH, kN, kD}, [](int s, const At& at) { return number(s, at[1], at[2], at[3]); }},
  };
  for (const Case& each : cases) {
    CAPTURE(each.layout);
    MappingRequest request = layouts(each.layout);
    if (each.heads > 0) request.heads = each.heads;
    const bool has_batch = each.layout.find('B') != std::string::npos;
    if (has_batch) request.batch = 1;
    if (each.layout[0] == 'L') request.layer = 1;
    std::vector<NamedArray> arrays;
    for (const auto& [name, its_salt] : {std::pair("q", kQ), std::pair("k", kK), std::pair("v", kV)}) {
      const int salt = its_salt;
      arrays.push_back(array_of(name, each.shape, [&](const At& at) { return each.cell(salt, at); }));
    }
    Session session = opened(arrays, request);
    CHECK(session.title == (each.layout[0] == 'L' ? "t, layer 1, batch 1" : has_batch ? "t, batch 1" : "t"));
    session.title = expected.title;
    check_same(session, expected);
  }
}

TEST_CASE("mapping: q, k and v in one tensor") {
  const Session expected = opened(plain_qkv());
  const auto cell = [](std::uint64_t part, std::uint64_t h, std::uint64_t n, std::uint64_t d) {
    return number(kQ + static_cast<int>(part), h, n, d);
  };
  struct Case {
    std::string layout;  // empty: none is needed
    Shape shape;
    std::function<float(const At&)> value;
    int heads = 0;
  };
  const Case cases[] = {
      {"", {3, 2, kH, kN, kD}, [&](const At& at) { return at[1] ? -1 : cell(at[0], at[2], at[3], at[4]); }},
      {"BN3HD", {2, kN, 3, kH, kD}, [&](const At& at) { return at[0] ? -1 : cell(at[2], at[3], at[1], at[4]); }},
      {"", {kN, 3 * kH * kD}, [&](const At& at) { return cell(at[1] / 12, at[1] % 12 / kD, at[0], at[1] % kD); }, kH},
      {"",
       {1, kN, 3 * kH * kD},
       [&](const At& at) { return cell(at[2] / 12, at[2] % 12 / kD, at[1], at[2] % kD); },
       kH},
      {"N(H3D)",
       {kN, 3 * kH * kD},
       [&](const At& at) { return cell(at[1] % 12 / kD, at[1] / 12, at[0], at[1] % kD); },
       kH},
      {"3HND", {3, kH, kN, kD}, [&](const At& at) { return cell(at[0], at[1], at[2], at[3]); }},
      {"NH3D", {kN, kH, 3, kD}, [&](const At& at) { return cell(at[2], at[1], at[0], at[3]); }},
  };
  for (const Case& each : cases) {
    CAPTURE(each.layout);
    CAPTURE(each.shape.size());
    MappingRequest request = each.layout.empty() ? MappingRequest{} : layouts(each.layout);
    if (each.heads > 0) request.heads = each.heads;
    // The weights beside it tell heads from tokens.
    Session session = opened({array_of("qkv", each.shape, each.value), weights_beside()}, request);
    session.title = expected.title;
    check_same(session, expected);
  }
}

TEST_CASE("mapping: grouped heads side by side: the keys' width says how many there are") {
  const auto side_by_side = [](const std::string& name, int salt, std::uint64_t heads) {
    return array_of(name, {kN, heads * kD}, [=](const At& at) { return number(salt, at[1] / kD, at[0], at[1] % kD); });
  };
  const std::vector<NamedArray> arrays = {side_by_side("q", kQ, 4), side_by_side("k", kK, 2), side_by_side("v", kV, 2)};
  check_question(propose_mapping(set_of(arrays)), MappingQuestion::Kind::kHeads, {"2", "4", "8", "16"});
  MappingRequest request;
  request.heads = 4;
  const Session expected = opened({heads_first("q", kQ, 4), heads_first("k", kK, 2), heads_first("v", kV, 2)});
  check_same(opened(arrays, request), expected);
  // Fused with fewer heads of K and V: four of Q, then two of K, then two of V.
  const NamedArray fused = array_of("qkv", {kN, 8 * kD}, [](const At& at) {
    const std::uint64_t slot = at[1] / kD;
    const int salt = slot < 4 ? kQ : slot < 6 ? kK : kV;
    return number(salt, slot < 4 ? slot : slot % 2, at[0], at[1] % kD);
  });
  request = layouts("N(3HD)");
  request.heads = 4;
  request.kv_heads = 2;
  check_same(opened({fused}, request), expected);
  // The same, each key with its two queries before it and its value behind it.
  const NamedArray grouped = array_of("qkv", {kN, 8 * kD}, [](const At& at) {
    const std::uint64_t group = at[1] / (4 * kD), slot = at[1] / kD % 4;
    const int salt = slot < 2 ? kQ : slot == 2 ? kK : kV;
    return number(salt, slot < 2 ? 2 * group + slot : group, at[0], at[1] % kD);
  });
  request = layouts("qkv=N(H3D)");
  request.heads = 4;
  request.kv_heads = 2;
  check_same(opened({grouped}, request), expected);
}

TEST_CASE("mapping: heads or tokens first is told by other tensors, by this program's own names, or asked") {
  const auto swapped = [](const std::string& name, int salt) {
    return array_of(name, {kN, kH, kD}, [=](const At& at) { return number(salt, at[1], at[0], at[2]); });
  };
  const Session expected = opened(plain_qkv());
  // 5 heads of 3 tokens or 3 heads of 5: q, k and v as such would be more heads than tokens.
  const std::vector<NamedArray> arrays = {swapped("q", kQ), swapped("k", kK), swapped("v", kV)};
  check_question(propose_mapping(set_of(arrays)), MappingQuestion::Kind::kLayout, {"HND", "NHD"});
  std::vector<NamedArray> beside = arrays;
  beside.push_back(weights_beside());
  check_same(opened(beside), expected);
  beside.back() = any_array("l0_scores", {1, kH, kN, kN});
  check_same(opened(beside), expected);
  beside.back() = any_array("x", {kN, 40});
  check_same(opened(beside), expected);
  // The answer settles it.
  MappingProposal proposal = propose_mapping(set_of(arrays));
  MappingRequest request;
  REQUIRE(answer(proposal.questions.front(), "NHD", request).ok());
  check_same(opened(arrays, request), expected);
  // Names of other programs promise nothing, whatever the sizes.
  check_question(propose_mapping(set_of({heads_first("query", kQ), heads_first("key", kK), heads_first("value", kV)})),
                 MappingQuestion::Kind::kLayout, {"HND", "NHD"});
  const Shape batch = {2, 4, 6, 8};
  check_question(propose_mapping(set_of({any_array("q", batch), any_array("k", batch), any_array("v", batch)})),
                 MappingQuestion::Kind::kLayout, {"BHND", "BNHD"});
  // Hooks of TransformerLens are tokens first.
  const Session hooks = opened({any_array("blocks.0.attn.hook_q", batch), any_array("blocks.0.attn.hook_k", batch),
                                any_array("blocks.0.attn.hook_v", batch)});
  CHECK(std::get<DirectSource>(hooks.problem.source).q.size() == 6);
  CHECK(hooks.tokens.size() == 4);
}

TEST_CASE("mapping: every name that is recognised") {
  const std::pair<Role, std::vector<std::string>> kNames[] = {
      {Role::kQ, {"q", "Q", "query", "queries", "layers.3.self_attn.q", "l0.q", "layer_2_q", "q_1", "hook_q"}},
      {Role::kK, {"k", "K", "key", "keys", "l0/key"}},
      {Role::kV, {"v", "V", "value", "values"}},
      {Role::kX, {"x", "X", "hidden_states", "embeddings", "inputs", "l1.x"}},
      {Role::kWq,
       {"wq", "W_Q", "q_proj.weight", "q_proj_weight", "attention.self.query.weight", "SelfAttention.q.weight",
        "model.layers.0.self_attn.q_proj.weight", "attention.wq.weight", "attn/query/kernel", "to_q.weight"}},
      {Role::kWk, {"wk", "W_K", "k_proj.weight", "key.weight", "k_proj_weight"}},
      {Role::kWv, {"wv", "W_V", "v_proj.weight", "value.weight", "v_lin.weight"}},
      {Role::kBq, {"bq", "b_Q", "q_proj.bias", "query.bias"}},
      {Role::kBk, {"bk", "k_proj.bias"}},
      {Role::kBv, {"bv", "v_proj.bias"}},
      {Role::kWo,
       {"wo", "W_O", "out_proj.weight", "o_proj.weight", "h.0.attn.c_proj.weight", "attention.output.dense.weight",
        "attn.proj.weight", "attention.wo.weight", "SelfAttention.o.weight", "attn.to_out.0.weight"}},
      {Role::kBo, {"bo", "b_O", "out_proj.bias", "attention.output.dense.bias", "h.0.attn.c_proj.bias"}},
      {Role::kAttn,
       {"attn", "attentions", "attention", "attn_weights", "weights", "A", "attentions.3", "l0.attn", "hook_pattern"}},
      {Role::kBias, {"bias", "attn_bias"}},
      {Role::kTokens, {"tokens", "words", "input_tokens", "tokens_utf8"}},
      {Role::kKeyTokens, {"key_tokens"}},
      {Role::kScores, {"scores", "attn_scores"}},
      {Role::kOut, {"out", "output", "attn_output", "l0.out"}},
  };
  for (const auto& [role, names] : kNames) {
    for (const std::string& name : names) {
      CAPTURE(name);
      const std::vector<NameReading> readings = read_name(name);
      REQUIRE(readings.size() == 1);
      CHECK(role_key(readings[0].role) == role_key(role));
      CHECK_FALSE(readings[0].fused);
    }
  }
  const std::pair<Role, std::vector<std::string>> kFused[] = {
      {Role::kQ, {"qkv", "layer0.qkv"}},
      {Role::kWq,
       {"wqkv", "Wqkv.weight", "in_proj_weight", "h.0.attn.c_attn.weight", "qkv_proj.weight", "qkv.weight",
        "query_key_value.weight"}},
      {Role::kBq, {"bqkv", "in_proj_bias", "h.0.attn.c_attn.bias", "Wqkv.bias", "query_key_value.bias"}}};
  for (const auto& [role, names] : kFused) {
    for (const std::string& name : names) {
      CAPTURE(name);
      const std::vector<NameReading> readings = read_name(name);
      REQUIRE(readings.size() == 1);
      CHECK(role_key(readings[0].role) == role_key(role));
      CHECK(readings[0].fused);
    }
  }
  // What a projection gave, or its weights.
  for (const std::string name : {"q_proj", "layers.1.attn.q_proj", "to_q"}) {
    const std::vector<NameReading> readings = read_name(name);
    REQUIRE(readings.size() == 2);
    CHECK(readings[0].role == Role::kQ);
    CHECK(readings[1].role == Role::kWq);
    CHECK(readings[1].is_unsure);
  }
  for (const std::string name :
       {"", ".", "ids", "l0.q_scaled", "l0.concat", "h.0.mlp.c_proj.weight", "h.0.attn.bias", "h.0.ln_1.weight",
        "encoder.layer.0.output.dense.weight", "layer.1.DenseReluDense.wo.weight", "attention.output.LayerNorm.bias",
        "embeddings.word_embeddings.weight", "mask", "q_proj.lora_A.weight", "a0", "老鼠"}) {
    CAPTURE(name);
    CHECK(read_name(name).empty());
  }
}

TEST_CASE("mapping: layers are counted where a name counts them") {
  const std::tuple<std::string, int, std::string> kLayers[] = {
      {"model.layers.3.self_attn.q_proj.weight", 3, "model.layers.*.self_attn"},
      {"transformer.h.11.attn.c_attn.weight", 11, "transformer.h.*.attn"},
      {"encoder.layer.2.attention.self.query.weight", 2, "encoder.layer.*.attention.self"},
      {"encoder.block.4.layer.0.SelfAttention.q.weight", 4, "encoder.block.*.layer.0.selfattention"},
      {"l0.q", 0, "l*"},
      {"layer_2_q", 2, "layer*"},
      {"encoderblock_7/query/kernel", 7, "encoderblock_*"},
      {"q_5", 5, ""},
      {"attentions.9", 9, ""}};
  for (const auto& [text, layer, module] : kLayers) {
    const std::string& name = text;
    CAPTURE(name);
    const std::vector<NameReading> readings = read_name(name);
    REQUIRE(readings.size() == 1);
    REQUIRE(readings[0].layer);
    CHECK(*readings[0].layer == layer);
    CHECK(readings[0].module == module);
  }
  CHECK_FALSE(read_name("self_attn.q")[0].layer);
  CHECK(layer_of_file("weights_layer1") == 1);
  CHECK_FALSE(layer_of_file("sentence_0"));
}

namespace {

// A .npy of one character a cell, "<U1".
TensorFile text_file(const std::string& name, const Shape& shape, const std::u32string& cells) {
  std::string header = "{'descr': '<U1', 'fortran_order': False, 'shape': " + shape_text(shape) + ", }";
  header.resize(117, ' ');
  std::string bytes = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n";
  for (const char32_t cell : cells) {
    for (int byte = 0; byte < 4; ++byte) bytes += static_cast<char>(cell >> (8 * byte) & 0xff);
  }
  const std::span<const std::byte> content = as_bytes(bytes);
  Result<TensorFile> file = TensorFile::from_bytes(Bytes(content.begin(), content.end()), name);
  REQUIRE_MESSAGE(file.ok(), file.error().message);
  return std::move(file).value();
}

TensorFile table_file(const std::string& name, const std::string& text) {
  const std::span<const std::byte> content = as_bytes(text);
  Result<TensorFile> file = TensorFile::from_bytes(Bytes(content.begin(), content.end()), name);
  REQUIRE_MESSAGE(file.ok(), file.error().message);
  return std::move(file).value();
}

}  // namespace

TEST_CASE("mapping: Q, K and V may be one and the same tensor, or the parts of one of any name") {
  MappingRequest request;
  REQUIRE(read_map_text("q=x,k=x,v=x", request).ok());
  const std::vector<NamedArray> arrays = {any_array("x", {5, 6})};
  const Session same = opened(arrays, request);
  CHECK(std::get<DirectSource>(same.problem.source).v[0]->coeff(4, 5) == std::get<0>(arrays[0].values)[29]);
  REQUIRE(read_map_text("qkv=x", request).ok());
  request.heads = 2;
  const Session parts = opened(arrays, request);
  CHECK(std::get<DirectSource>(parts.problem.source).v[1]->coeff(4, 0) == std::get<0>(arrays[0].values)[29]);
}

TEST_CASE("mapping: tokens are texts, of the batch that is read") {
  TensorSet files = set_of({any_array("q", {2, 1, 3, 4}), any_array("k", {2, 1, 3, 4}), any_array("v", {2, 1, 3, 4})});
  files.push_back({"tokens.npy", text_file("tokens", {2, 3}, U"abc\u8001\u9f20d")});
  MappingRequest request = layouts("BHND");
  CHECK(opened(files, request).tokens == std::vector<std::string>{"a", "b", "c"});
  request.batch = 1;
  CHECK(opened(files, request).tokens == std::vector<std::string>{"老", "鼠", "d"});
  // They tell which axis is theirs.
  request.layout.reset();
  files[0] =
      file_of("a.npz", {any_array("q", {2, 3, 4, 5}), any_array("k", {2, 3, 4, 5}), any_array("v", {2, 3, 4, 5})});
  CHECK(std::get<DirectSource>(opened(files, request).problem.source).q.size() == 4);

  // Numbers are tokens only where the person says so.
  const std::vector<NamedArray> numbered = {any_array("q", {3, 4}),
                                            any_array("k", {3, 4}),
                                            any_array("v", {3, 4}),
                                            {"ids", {3}, std::vector<float>{7, 101, 2}}};
  CHECK(opened(numbered).tokens == std::vector<std::string>{"0", "1", "2"});
  request = {};
  REQUIRE(read_map_text("tokens=ids", request).ok());
  CHECK(opened(numbered, request).tokens == std::vector<std::string>{"7", "101", "2"});
  check_error(set_of({any_array("q", {4, 4}), any_array("k", {4, 4}), any_array("v", {4, 4}), numbered[3]}),
              "tokens has 3 entries but q has 4 rows", request);
  // As bytes with a newline after each.
  const std::vector<NamedArray> bytes = {
      any_array("q", {2, 4}),
      any_array("k", {2, 4}),
      any_array("v", {2, 4}),
      {"tokens_utf8", {6}, std::vector<std::uint8_t>{0xe8, 0x80, 0x81, '\n', 'x', '\n'}}};
  CHECK(opened(bytes).tokens == std::vector<std::string>{"老", "x"});
}

TEST_CASE("mapping: the first row and column of a table name keys and queries") {
  const TensorSet files = {{"attn.csv", table_file("attn", ",x,y,z\na,0.2,0.3,0.5\nb,1,0,0\n")}};
  const Session session = opened(files);
  CHECK(session.tokens == std::vector<std::string>{"a", "b"});
  REQUIRE(session.key_tokens);
  CHECK(*session.key_tokens == std::vector<std::string>{"x", "y", "z"});
  CHECK(std::get<WeightsSource>(session.problem.source).attn[0]->coeff(0, 2) == 0.5f);
  const TensorSet square = {{"attn.csv", table_file("attn", ",a,b\na,0.5,0.5\nb,1,0\n")}};
  CHECK_FALSE(opened(square).key_tokens);
}

TEST_CASE("mapping: weights among many keys begin on a logarithmic scale") {
  const auto mode = [](std::uint64_t tokens) {
    return opened({any_array("q", {tokens, 2}), any_array("k", {tokens, 2}), any_array("v", {tokens, 2})})
        .view.weights_range.mode;
  };
  CHECK(mode(127) == RangeMode::kUnit);
  CHECK(mode(128) == RangeMode::kLog);
}
