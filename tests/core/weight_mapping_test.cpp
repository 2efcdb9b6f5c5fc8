// Projections and whole models: weights of every origin give the session that this program's own file gives.
#include <cmath>

#include "core/attention/forward.h"
#include "tests/core/mapping_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

// X of 5 tokens and d_model 6; 2 heads of 3, hence square weights.
constexpr std::uint64_t kN = 5, kE = 6, kHeads = 2, kD = 3;
constexpr int kX = 1, kWq = 2, kBq = 5, kWo = 8, kBo = 9;

float weight(int salt, std::uint64_t in, std::uint64_t out) { return number(salt, 0, in, out); }

NamedArray x_array(const std::string& name = "x", std::uint64_t tokens = kN) {
  return array_of(name, {tokens, kE}, [](const At& at) { return number(kX, 0, at[0], at[1]); });
}
NamedArray in_out(const std::string& name, int salt, std::uint64_t out = kE) {
  return array_of(name, {kE, out}, [=](const At& at) { return weight(salt, at[0], at[1]); });
}
NamedArray out_in(const std::string& name, int salt, std::uint64_t out = kE) {
  return array_of(name, {out, kE}, [=](const At& at) { return weight(salt, at[1], at[0]); });
}
NamedArray row(const std::string& name, int salt, std::uint64_t size = kE) {
  return array_of(name, {size}, [=](const At& at) { return weight(salt, 0, at[0]); });
}
// Salts of q, k and v follow each other.
float fused(int first, std::uint64_t in, std::uint64_t out) {
  return weight(first + static_cast<int>(out / kE), in, out % kE);
}

std::vector<NamedArray> own_arrays(bool biases = true) {
  std::vector<NamedArray> arrays = {x_array(), in_out("wq", kWq), in_out("wk", kWq + 1), in_out("wv", kWq + 2),
                                    in_out("wo", kWo)};
  if (biases) {
    for (const auto& [name, salt] :
         {std::pair("bq", kBq), std::pair("bk", kBq + 1), std::pair("bv", kBq + 2), std::pair("bo", kBo)}) {
      arrays.push_back(row(name, salt));
    }
  }
  return arrays;
}

MappingRequest with_heads(int heads) {
  MappingRequest request;
  request.heads = heads;
  return request;
}

const ProjectedSource& projected(const Session& session) { return std::get<ProjectedSource>(session.problem.source); }

}  // namespace

TEST_CASE("mapping: weights of every origin are the same session") {
  const MappingRequest request = with_heads(kHeads);
  const Session expected = opened(own_arrays(), request);
  REQUIRE(projected(expected).heads == kHeads);
  REQUIRE(projected(expected).wv->coeff(4, 1) == weight(kWq + 2, 4, 1));
  REQUIRE(expected.problem.bo->get()(0, 5) == weight(kBo, 0, 5));

  SUBCASE("Llama, BART: q_proj and its like are [out, in]") {
    const std::string at = "model.layers.0.self_attn.";
    check_same(
        opened({x_array("hidden_states"), out_in(at + "q_proj.weight", kWq), out_in(at + "k_proj.weight", kWq + 1),
                out_in(at + "v_proj.weight", kWq + 2), out_in(at + "o_proj.weight", kWo), row(at + "q_proj.bias", kBq),
                row(at + "k_proj.bias", kBq + 1), row(at + "v_proj.bias", kBq + 2), row(at + "o_proj.bias", kBo),
                any_array("model.layers.0.mlp.up_proj.weight", {9, kE})},
               request),
        expected);
  }
  SUBCASE("BERT: separate weights, and a feed-forward part with a dense of its own") {
    const std::string at = "bert.encoder.layer.0.attention.";
    check_same(opened({x_array(), out_in(at + "self.query.weight", kWq), row(at + "self.query.bias", kBq),
                       out_in(at + "self.key.weight", kWq + 1), row(at + "self.key.bias", kBq + 1),
                       out_in(at + "self.value.weight", kWq + 2), row(at + "self.value.bias", kBq + 2),
                       out_in(at + "output.dense.weight", kWo), row(at + "output.dense.bias", kBo),
                       any_array("bert.encoder.layer.0.output.dense.weight", {kE, 24}),
                       any_array("bert.encoder.layer.0.attention.output.LayerNorm.weight", {kE})},
                      request),
               expected);
  }
  SUBCASE("GPT-2: c_attn is [in, 3·out]") {
    const NamedArray c_attn =
        array_of("h.0.attn.c_attn.weight", {kE, 3 * kE}, [](const At& at) { return fused(kWq, at[0], at[1]); });
    const NamedArray c_bias =
        array_of("h.0.attn.c_attn.bias", {3 * kE}, [](const At& at) { return fused(kBq, 0, at[0]); });
    check_same(
        opened({x_array(), c_attn, c_bias, in_out("h.0.attn.c_proj.weight", kWo), row("h.0.attn.c_proj.bias", kBo),
                any_array("h.0.attn.bias", {1, 1, kN, kN}), in_out("h.0.mlp.c_proj.weight", 30)},
               request),
        expected);
  }
  SUBCASE("torch.nn.MultiheadAttention: in_proj is [3·out, in]") {
    const NamedArray in_proj =
        array_of("in_proj_weight", {3 * kE, kE}, [](const At& at) { return fused(kWq, at[1], at[0]); });
    const NamedArray in_bias = array_of("in_proj_bias", {3 * kE}, [](const At& at) { return fused(kBq, 0, at[0]); });
    check_same(
        opened({x_array(), in_proj, in_bias, out_in("out_proj.weight", kWo), row("out_proj.bias", kBo)}, request),
        expected);
  }
  SUBCASE("TransformerLens: weights of each head, heads first") {
    const auto per_head = [](const std::string& name, int salt) {
      return array_of("blocks.0.attn." + name, {kHeads, kE, kD},
                      [=](const At& at) { return weight(salt, at[1], at[0] * kD + at[2]); });
    };
    const auto bias = [](const std::string& name, int salt) {
      return array_of("blocks.0.attn." + name, {kHeads, kD},
                      [=](const At& at) { return weight(salt, 0, at[0] * kD + at[1]); });
    };
    const NamedArray w_o = array_of("blocks.0.attn.W_O", {kHeads, kD, kE},
                                    [](const At& at) { return weight(kWo, at[0] * kD + at[1], at[2]); });
    check_same(opened({x_array(), per_head("W_Q", kWq), per_head("W_K", kWq + 1), per_head("W_V", kWq + 2), w_o,
                       bias("b_Q", kBq), bias("b_K", kBq + 1), bias("b_V", kBq + 2), row("blocks.0.attn.b_O", kBo)}),
               expected);
  }
  SUBCASE("Flax: kernels are [in, heads, d]") {
    const auto kernel = [](const std::string& name, int salt) {
      return array_of("attention/" + name + "/kernel", {kE, kHeads, kD},
                      [=](const At& at) { return weight(salt, at[0], at[1] * kD + at[2]); });
    };
    const auto bias = [](const std::string& name, int salt) {
      return array_of("attention/" + name + "/bias", {kHeads, kD},
                      [=](const At& at) { return weight(salt, 0, at[0] * kD + at[1]); });
    };
    const NamedArray out = array_of("attention/out/kernel", {kHeads, kD, kE},
                                    [](const At& at) { return weight(kWo, at[0] * kD + at[1], at[2]); });
    check_same(
        opened({x_array(), kernel("query", kWq), kernel("key", kWq + 1), kernel("value", kWq + 2), out,
                bias("query", kBq), bias("key", kBq + 1), bias("value", kBq + 2), row("attention/out/bias", kBo)}),
        expected);
  }
  SUBCASE("any name, any layout, by hand") {
    MappingRequest by_hand = with_heads(kHeads);
    REQUIRE(read_map_text("x=a,wq=b,wk=c,wv=d,wo=e,bq=f,bk=g,bv=h,bo=i", by_hand).ok());
    REQUIRE(read_layout_text("wq=OI,wk=IO,wv=OI,wo=(HD)O,x=1ND", by_hand).ok());
    NamedArray x = x_array("a");
    x.shape.insert(x.shape.begin(), 1);
    by_hand.layouts[Role::kWo] = parse_layout("IO").value();
    check_same(opened({x, out_in("b", kWq), in_out("c", kWq + 1), out_in("d", kWq + 2), in_out("e", kWo), row("f", kBq),
                       row("g", kBq + 1), row("h", kBq + 2), row("i", kBo)},
                      by_hand),
               expected);
  }
}

TEST_CASE("mapping: Llama's fewer key and value heads follow from their width") {
  const std::string at = "layers.0.self_attn.";
  const std::vector<NamedArray> arrays = {
      x_array(), out_in(at + "q_proj.weight", kWq, 8), out_in(at + "k_proj.weight", kWq + 1, 4),
      out_in(at + "v_proj.weight", kWq + 2, 4), any_array(at + "o_proj.weight", {kE, 8})};
  const Session session = opened(arrays, with_heads(4));
  CHECK(projected(session).kv_heads == 2);
  CHECK(projected(session).wk->coeff(5, 3) == weight(kWq + 1, 5, 3));
  CHECK(session.problem.wo->rows() == 8);
  check_question(propose_mapping(set_of(arrays)), MappingQuestion::Kind::kHeads, {"1", "2", "4", "8"});

  // Together: as wide as 6 heads of 4, which may be 4 of Q with 1 of K and V, or others; and whether each K has its
  // queries beside it differs among models.
  const std::vector<NamedArray> together = {x_array(), any_array("attn.qkv_proj.weight", {24, kE})};
  MappingRequest request = with_heads(4);
  CHECK(propose_mapping(set_of(together), request).questions.size() == 2);
  REQUIRE(read_layout_text("wqkv=(3O)I", request).ok());
  check_question(propose_mapping(set_of(together), request), MappingQuestion::Kind::kKvHeads, {"1", "2", "4"});
  request.kv_heads = 1;
  const Session shared = opened(together, request);
  CHECK(projected(shared).wq->cols() == 16);
  CHECK(projected(shared).wk->coeff(2, 3) == std::get<0>(together[1].values)[(16 + 3) * kE + 2]);
  CHECK(projected(shared).wv->coeff(2, 3) == std::get<0>(together[1].values)[(20 + 3) * kE + 2]);
}

TEST_CASE("mapping: how square weights lie is told by the name, by the other weights, or asked") {
  const std::vector<NamedArray> odd = {x_array(), any_array("a", {kE, kE}), any_array("b", {kE, kE}),
                                       any_array("c", {kE, kE})};
  MappingRequest request = with_heads(kHeads);
  REQUIRE(read_map_text("wq=a,wk=b,wv=c", request).ok());
  const MappingProposal proposal = propose_mapping(set_of(odd), request);
  check_question(proposal, MappingQuestion::Kind::kLayout, {"wqkv=IO", "wqkv=OI"});
  MappingRequest answered = request;
  REQUIRE(answer(proposal.questions.front(), "wqkv=OI", answered).ok());
  CHECK(projected(opened(odd, answered)).wq->coeff(0, 1) == std::get<0>(odd[1].values)[kE]);
  // A narrower K says how all of them lie.
  std::vector<NamedArray> grouped = odd;
  grouped[2] = any_array("b", {kD, kE});
  grouped[3] = any_array("c", {kD, kE});
  CHECK(projected(opened(grouped, request)).wq->coeff(0, 1) == std::get<0>(odd[1].values)[kE]);
  // BLOOM and others of this name lay q, k and v of each head together, some do not.
  check_question(propose_mapping(set_of({x_array(), any_array("query_key_value.weight", {3 * kE, kE})}), with_heads(2)),
                 MappingQuestion::Kind::kLayout, {"wqkv=(3O)I", "wqkv=(H3D)I"});
}

TEST_CASE("mapping: what a projection gave and its weights are told apart by X") {
  const std::vector<NamedArray> weights = {x_array(), out_in("q_proj", kWq), out_in("k_proj", kWq + 1),
                                           out_in("v_proj", kWq + 2)};
  MappingRequest request = with_heads(kHeads);
  REQUIRE(read_layout_text("OI", request).ok());
  CHECK(projected(opened(weights, request)).wq->coeff(2, 3) == weight(kWq, 2, 3));
  const Session values =
      opened({any_array("q_proj", {7, 8}), any_array("k_proj", {7, 8}), any_array("v_proj", {7, 8})}, with_heads(2));
  CHECK(std::get<DirectSource>(values.problem.source).q.size() == 2);
  check_question(
      propose_mapping(set_of({any_array("q_proj", {7, 8}), any_array("k_proj", {7, 8}), any_array("v_proj", {7, 8})})),
      MappingQuestion::Kind::kHeads, {"1", "2", "4", "8"});
}

TEST_CASE("mapping: layers and modules of a model") {
  std::vector<NamedArray> arrays = {x_array()};
  for (const std::string module : {"encoder.layers.0.self_attn.", "encoder.layers.1.self_attn."}) {
    const int salt = module[15] == '0' ? kWq : kWq + 20;
    for (const std::string name : {"q", "k", "v"}) arrays.push_back(out_in(module + name + "_proj.weight", salt));
  }
  const MappingProposal proposal = propose_mapping(set_of(arrays), with_heads(kHeads));
  CHECK(proposal.layers == std::vector<int>{0, 1});
  CHECK(proposal.layer == 0);
  CHECK(proposal.mapping.part == "layer 0");
  MappingRequest request = with_heads(kHeads);
  request.layer = 1;
  const Session second = opened(arrays, request);
  CHECK(second.title == "t, layer 1");
  CHECK(projected(second).wq->coeff(1, 0) == weight(kWq + 20, 1, 0));
  request.layer = 7;
  check_error(set_of(arrays), "there is no layer 7: the layers are 0 and 1", request);

  for (const std::string name : {"q", "k", "v"}) {
    arrays.push_back(out_in("decoder.layers.0.encoder_attn." + name + "_proj.weight", kWq + 40));
  }
  check_question(propose_mapping(set_of(arrays), with_heads(kHeads)), MappingQuestion::Kind::kModule,
                 {"decoder.layers.*.encoder_attn", "encoder.layers.*.self_attn"});
  request = with_heads(kHeads);
  request.module = "encoder_attn";
  CHECK(projected(opened(arrays, request)).wk->coeff(1, 0) == weight(kWq + 40, 1, 0));
  request.module = "vision";
  check_error(set_of(arrays), "there is no module \"vision\": the modules are decoder.layers.*.encoder_attn and",
              request);
}

TEST_CASE("mapping: attention of all layers, [L, B, H, N, N]") {
  const NamedArray all = array_of("attentions", {3, 2, 4, 5, 5}, [](const At& at) {
    return static_cast<float>(at[0] * 1000 + at[1] * 100 + at[2] * 10) + 0.1f * static_cast<float>(at[3] * 5 + at[4]);
  });
  const MappingProposal proposal = propose_mapping(set_of({all}));
  CHECK(proposal.layers.size() == 3);
  CHECK(proposal.batches == 2);
  MappingRequest request;
  request.layer = 2;
  request.batch = 1;
  const Session session = opened({all}, request);
  CHECK(session.title == "t, layer 2, batch 1");
  const auto& attn = std::get<WeightsSource>(session.problem.source).attn;
  REQUIRE(attn.size() == 4);
  CHECK(attn[3]->coeff(4, 2) == 2130 + 0.1f * 22);
  request.layer = 3;
  check_error(set_of({all}), "has no layer 3: there are 0 … 2", request);
  request.layer = 0;
  request.batch = 2;
  check_error(set_of({all}), "has no batch 2: there are 0 … 1", request);
  // A tensor a layer.
  request = {};
  request.layer = 1;
  const Session one = opened({any_array("attentions.0", {2, 5, 5}), any_array("attentions.1", {2, 5, 5}, 3)}, request);
  CHECK(std::get<WeightsSource>(one.problem.source).attn[0]->coeff(0, 0) == 3);
  CHECK(opened({any_array("attn", {5, 7})}).key_tokens->size() == 7);
}

TEST_CASE("mapping: a name that any tensor may have is asked about, whatever its shape") {
  using Kind = MappingQuestion::Kind;
  const NamedArray a = any_array("A", {2, 5, 5}), b = any_array("b", {2, 5, 5}, 3);
  check_question(propose_mapping(set_of({a})), Kind::kTensor, {"attn=A"});
  check_question(propose_mapping(set_of({any_array("weights", {5, 7})})), Kind::kTensor, {"attn=weights"});
  const TensorSet files = set_of({a, b, any_array("c", {5}), any_array("d", {4, 4, 4})});
  const MappingProposal proposal = propose_mapping(files);
  check_question(proposal, Kind::kTensor, {"attn=A", "attn=b", "attn=d"});
  const auto first_cell = [&](const std::string& value) {
    MappingRequest request;
    REQUIRE(answer(proposal.questions.front(), value, request).ok());
    return std::get<WeightsSource>(opened(files, request).problem.source).attn[0]->coeff(0, 0);
  };
  CHECK(first_cell("attn=A") == 0);
  CHECK(first_cell("attn=b") == 3);
  // Beside a name that says it, and beside inputs, it is nobody's question.
  CHECK(opened({a, any_array("attn", {2, 5, 5}, 4)}).problem.source.index() == 2);
  const Session session = opened({a, any_array("q", {2, 5, 3}), any_array("k", {2, 5, 3}), any_array("v", {2, 5, 3})});
  CHECK(std::holds_alternative<DirectSource>(session.problem.source));
}

TEST_CASE("mapping: the real model opens with nothing but the proposal") {
  const auto file = [](const std::string& name) {
    Result<TensorFile> opened_file = TensorFile::open(QKV_TEST_DATA "/use_lite/" + name);
    REQUIRE_MESSAGE(opened_file.ok(), name);
    return NamedTensors{name, std::move(opened_file).value()};
  };
  const auto check_attn = [](const NamedTensors& sentence, const Session& session, const std::string& layer,
                             bool with_out) {
    const Result<Trace> trace = forward(session.problem);
    REQUIRE(trace.ok());
    const Result<Tensor> attn = sentence.file.read(layer + ".attn"), out = sentence.file.read(layer + ".out");
    REQUIRE(attn.ok());
    REQUIRE(out.ok());
    // float32 throughout in the other implementation; recomputed in float64 it agrees to 3e-6 and 2e-5.
    std::size_t at = 0;
    float worst = 0;
    for (const HeadTrace& head : trace.value().heads) {
      const Matrix& ours = head.attn;
      for (Index i = 0; i < ours.size(); ++i) {
        worst = std::max(worst, std::abs(ours.data()[i] - attn.value().values[at++]));
      }
    }
    CHECK(worst < 1e-5f);
    CHECK(at == attn.value().values.size());
    if (!with_out) return;
    worst = 0;
    REQUIRE(trace.value().out);
    for (Index i = 0; i < trace.value().out->size(); ++i) {
      worst = std::max(worst, std::abs(trace.value().out->data()[i] - out.value().values[static_cast<std::size_t>(i)]));
    }
    CHECK(worst < 5e-5f);
  };
  for (const int s : {0, 1, 2}) {
    const NamedTensors sentence = file("sentence_" + std::to_string(s) + ".npz");
    for (const int l : {0, 1}) {
      CAPTURE(s);
      CAPTURE(l);
      const std::string layer = "l" + std::to_string(l);
      MappingRequest request;
      request.layer = l;
      const Session alone = opened(TensorSet{sentence}, request);
      check_attn(sentence, alone, layer, false);
      CHECK(alone.tokens.front() == (s == 1 ? "▁Think" : "▁The"));
      // The weights' file says its layer by its name, so that nothing has to be asked for.
      const Session with_weights = opened(TensorSet{sentence, file("weights_layer" + std::to_string(l) + ".npz")});
      CHECK(projected(with_weights).heads == 4);
      check_attn(sentence, with_weights, layer, true);
    }
  }
}

TEST_CASE("mapping: two files, and a tensor that both have") {
  const TensorSet files = {file_of("a.npz", {any_array("q", {2, 4, 3}), any_array("k", {2, 4, 3})}),
                           file_of("b.npz", {any_array("v", {2, 4, 3}, 5)})};
  CHECK(std::get<DirectSource>(opened(files).problem.source).v[0]->coeff(0, 0) == 5);
  const TensorSet twice = {
      file_of("a.npz", {any_array("q", {2, 4, 3}), any_array("k", {2, 4, 3}), any_array("v", {2, 4, 3})}),
      file_of("dir/b.npz", {any_array("v", {2, 4, 3}, 5)})};
  const MappingProposal proposal = propose_mapping(twice);
  check_question(proposal, MappingQuestion::Kind::kTensor, {"v=a.npz:v", "v=dir/b.npz:v"});
  MappingRequest request;
  REQUIRE(answer(proposal.questions.front(), "v=dir/b.npz:v", request).ok());
  CHECK(std::get<DirectSource>(opened(twice, request).problem.source).v[0]->coeff(0, 0) == 5);
  REQUIRE(read_map_text("v=b:v", request).ok());
  CHECK(std::get<DirectSource>(opened(twice, request).problem.source).v[0]->coeff(0, 0) == 5);
}

TEST_CASE("mapping: a bias of the scores has their shape; other tensors of the name are left alone") {
  std::vector<NamedArray> arrays = {any_array("q", {2, 4, 3}), any_array("k", {2, 4, 3}), any_array("v", {2, 4, 3}),
                                    any_array("bias", {4, 4}, 7)};
  const Session session = opened(arrays);
  REQUIRE(session.problem.options.bias);
  CHECK((*session.problem.options.bias)->coeff(0, 0) == 7);
  arrays.back() = any_array("bias", {8});
  CHECK_FALSE(opened(arrays).problem.options.bias);
  arrays.back() = any_array("attn_bias", {1, 1, 4, 4});
  CHECK(opened(arrays).problem.options.bias);
  MappingRequest request;
  REQUIRE(read_map_text("bias=", request).ok());
  CHECK_FALSE(opened(arrays, request).problem.options.bias);
}

TEST_CASE("mapping: what does not fit is named with both sides and both numbers") {
  check_error(set_of({x_array(), any_array("wq", {5, 5}), any_array("wk", {5, 5}), any_array("wv", {5, 5})}),
              "wq (5, 5) has no axis of the 6 columns (d_model) that x has");
  check_error(set_of({any_array("q", {2, 4, 3}), any_array("k", {2, 5, 3}), any_array("v", {2, 4, 3})}),
              "v (2, 4, 3) as HND has 4 rows, one for each key, but k (2, 5, 3) as HND has 5");
  check_error(set_of({any_array("q", {4, 10}), any_array("k", {4, 10}), any_array("v", {4, 10})}),
              "\"q\" has the shape (4, 10), but q as N(HD) needs a multiple of 3 on axis 1", [] {
                MappingRequest request = layouts("N(HD)");
                request.heads = 3;
                return request;
              }());
  check_error(set_of({any_array("q", {2, 4, 3}), any_array("k", {2, 4, 3}), any_array("v", {2, 4, 3})}),
              "\"q\" has the shape (2, 4, 3), but q as NHD needs 2 heads on axis 1", [] {
                MappingRequest request = layouts("NHD");
                request.heads = 2;
                return request;
              }());
  check_error(set_of({any_array("q", {4, 3}), any_array("k", {4, 3}), any_array("v", {4, 3})}),
              "the layout BHND has an axis for none of the tensors: q (4, 3)", layouts("BHND"));
  MappingRequest request;
  REQUIRE(read_map_text("q=nope", request).ok());
  check_error(set_of({any_array("q", {4, 3})}), "there is no tensor \"nope\" for q: the file has q (4, 3)", request);
  check_error(set_of({in_out("wq", 1), in_out("wk", 1), in_out("wv", 1)}),
              "the inputs are arrays named x, wq, wk and wv, but x is missing: the file has wq (6, 6)");
}

TEST_CASE("mapping: words of roles and layouts are refused by name") {
  MappingRequest request;
  const auto check = [](const Status& status, const std::string& words) {
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().code == ErrorCode::kUsage);
    const bool says_it = status.error().message.find(words) != std::string::npos;
    CHECK_MESSAGE(says_it, status.error().message << " should say: " << words);
  };
  check(read_map_text("w=a", request), "\"w=a\" does not start with ROLE=");
  check(read_map_text("q", request), "does not start with ROLE=");
  check(read_layout_text("NXD", request), "has the letter \"X\", which names no axis");
  check(read_layout_text("N(HD", request), "lacks a closing parenthesis");
  check(read_layout_text("NH)D", request), "has a parenthesis too many");
  check(read_layout_text("HHD", request), "has \"H\" too often");
  check(read_layout_text("N(ND)", request), "has (MD)");
  check(read_layout_text("()", request), "has empty parentheses");
  check(read_layout_text("", request), "is empty");
  check(read_layout_text("q=NN", request), "the layout NN is none of q, which can be ND, HND");
  check(read_layout_text("wo=HND", request), "is none of wo, which can be IO, OI, HDO");
  // Names may hold commas and equals signs.
  REQUIRE(read_map_text("q=a,b=c,k=d", request).ok());
  CHECK(request.tensors.at(Role::kQ) == "a,b=c");
  CHECK(request.tensors.at(Role::kK) == "d");
  REQUIRE(read_map_text("wqkv=f", request).ok());
  CHECK(request.tensors.at(Role::kWv) == "f");
  for (const std::string text : {"HND", "N(HD)", "LBHNN", "(H3D)I", "1NN", "BN(3HD)"}) {
    CHECK(layout_text(parse_layout(text).value()) == text);
  }
  CHECK(layout_text(parse_layout("bn(hd)").value()) == "BN(HD)");
}
