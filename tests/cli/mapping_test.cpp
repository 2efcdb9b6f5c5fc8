// Tensors of other programs on the command line: what is proposed, what has to be said, and by which flag.
#include <nlohmann/json.hpp>

#include "core/tensor_io/npz.h"
#include "core/tensor_io/tensor_file.h"
#include "tests/cli/support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

using Json = nlohmann::json;
using Shape = std::vector<std::uint64_t>;

const std::string kModel = kData + "use_lite/";

std::size_t size_of(const Shape& shape) {
  std::size_t size = 1;
  for (const std::uint64_t axis : shape) size *= axis;
  return size;
}

NamedArray array_of(const std::string& name, const Shape& shape, int salt) {
  std::vector<float> values(size_of(shape));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.1f * static_cast<float>((i * 7 + salt) % 23) - 1;
  return {name, shape, std::move(values)};
}

// [H, N, d] of another array's [N, H, d].
NamedArray heads_first(const NamedArray& array) {
  const Shape& from = array.shape;
  const auto& values = std::get<std::vector<float>>(array.values);
  std::vector<float> swapped;
  for (std::uint64_t h = 0; h < from[1]; ++h) {
    for (std::uint64_t n = 0; n < from[0]; ++n) {
      for (std::uint64_t d = 0; d < from[2]; ++d) swapped.push_back(values[(n * from[1] + h) * from[2] + d]);
    }
  }
  return {array.name, {from[1], from[0], from[2]}, std::move(swapped)};
}

std::string write_arrays(const std::string& path, const std::vector<NamedArray>& arrays) {
  const Result<Bytes> bytes = npz_bytes(arrays);
  REQUIRE(bytes.ok());
  write_text(path, as_text(bytes.value()));
  return path;
}

std::vector<float> values(const std::string& path, const std::string& name) {
  const Result<TensorFile> file = TensorFile::open(path);
  REQUIRE_MESSAGE(file.ok(), path);
  Result<Tensor> tensor = file.value().read(name);
  REQUIRE_MESSAGE(tensor.ok(), name);
  return std::move(tensor).value().values;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
  return worst;
}

Json inspected(std::vector<std::string> words) {
  words.insert(words.begin(), "inspect");
  words.push_back("--json");
  const Finished finished = qkvlab(words);
  REQUIRE_MESSAGE(finished.exit_code == 0, finished.err);
  return Json::parse(finished.out);
}

}  // namespace

TEST_CASE("mapping: the real model runs from its own files") {
  const TempFolder folder;
  const std::string out = folder / "out.npz";
  // float32 throughout in the other implementation: it agrees to 3e-6 in attn and 2e-5 in out.
  check_silent(qkvlab({"run", kModel + "sentence_0.npz", "-o", out}));
  CHECK(largest_difference(values(out, "attn"), values(kModel + "sentence_0.npz", "l0.attn")) < 1e-5);
  check_silent(qkvlab({"run", kModel + "sentence_0.npz", "--layer", "1", "-o", out}));
  CHECK(largest_difference(values(out, "attn"), values(kModel + "sentence_0.npz", "l1.attn")) < 1e-5);
  for (const std::string layer : {"0", "1"}) {
    check_silent(
        qkvlab({"run", kModel + "sentence_2.npz", "--with", kModel + "weights_layer" + layer + ".npz", "-o", out}));
    const std::string prefix = "l" + layer + ".";
    CHECK(largest_difference(values(out, "attn"), values(kModel + "sentence_2.npz", prefix + "attn")) < 1e-5);
    CHECK(largest_difference(values(out, "out"), values(kModel + "sentence_2.npz", prefix + "out")) < 5e-5);
  }
  check_refused(qkvlab({"run", kModel + "weights_layer0.npz", "-o", out}), 3,
                "but x is missing: the file has wqkv (256, 768), bqkv (768,), wo (256, 512) and bo (512,); say which "
                "tensor is what with --map ROLE=NAME, and join files by --with");
  check_refused(qkvlab({"run", kModel + "sentence_0.npz", "--layer", "2", "-o", out}), 3,
                "there is no layer 2: the layers are 0 and 1");
}

TEST_CASE("mapping: what names and shapes leave open is refused with the flags that settle it") {
  const TempFolder folder;
  const std::string out = folder / "out.npz", want = folder / "want.npz";
  const std::vector<NamedArray> arrays = {array_of("query", {5, 3, 4}, 1), array_of("key", {5, 3, 4}, 2),
                                          array_of("value", {5, 3, 4}, 3)};
  const std::string file = write_arrays(folder / "other.npz", arrays);
  check_refused(qkvlab({"run", file, "-o", out}), 3,
                "may be read in several ways: HND (5 heads of 3 tokens, d = 4) or NHD (3 heads of 5 tokens, d = 4); "
                "choose with --layout HND");
  check_refused(qkvlab({"render", file, "-o", folder / "out.png"}), 3, "choose with --axes HND");
  check_silent(qkvlab({"run", file, "--layout", "NHD", "-o", out}));

  std::vector<NamedArray> plain;
  for (const NamedArray& array : arrays) plain.push_back(heads_first(array));
  plain[0].name = "q", plain[1].name = "k", plain[2].name = "v";
  check_silent(qkvlab({"run", write_arrays(folder / "plain.npz", plain), "-o", want}));
  for (const std::string name : {"q", "attn", "concat"}) CHECK(values(out, name) == values(want, name));
  // The same flags in the other commands.
  check_silent(qkvlab({"render", file, "--axes", "NHD", "--matrix", "attn", "-o", folder / "out.png"}));
  const Json inspect = inspected({file, "--layout", "q=NHD,k=NHD,v=NHD"});
  CHECK(inspect["mapping"]["questions"].empty());
  CHECK(inspect["mapping"]["tensors"][0]["layout"] == "NHD");
}

TEST_CASE("mapping: any names, by --map") {
  const TempFolder folder;
  const std::string out = folder / "out.npz", want = folder / "want.npz";
  const std::vector<NamedArray> plain = {array_of("q", {2, 4, 3}, 1), array_of("k", {2, 4, 3}, 2),
                                         array_of("v", {2, 4, 3}, 3)};
  std::vector<NamedArray> odd = plain;
  odd[0].name = "first", odd[1].name = "second", odd[2].name = "third";
  check_silent(qkvlab({"run", write_arrays(folder / "plain.npz", plain), "-o", want}));
  const std::string file = write_arrays(folder / "odd.npz", odd);
  check_silent(qkvlab({"run", file, "--map", "q=first,k=second,v=third", "--layout", "HND", "-o", out}));
  CHECK(values(out, "attn") == values(want, "attn"));
  check_refused(
      qkvlab({"run", file, "--map", "q=fifth,k=second,v=third", "-o", out}), 3,
      "there is no tensor \"fifth\" for q: the file has first (2, 4, 3), second (2, 4, 3) and third (2, 4, 3)");
  check_refused(qkvlab({"run", file, "--map", "p=first", "-o", out}), 2,
                "--map: \"p=first\" does not start with ROLE=");
  check_refused(qkvlab({"run", file, "--layout", "NXD", "-o", out}), 2, "--layout: the layout \"NXD\" has the letter");
  check_refused(qkvlab({"run", file, "--heads", "0", "-o", out}), 2, "--heads: \"0\" is not a whole number from 1");
  check_refused(qkvlab({"run", file, "--with", folder / "none.npz", "-o", out}), 3, "none.npz: ");
  check_refused(qkvlab({"run", "cat_sleeps", "--heads", "2", "-o", out}), 2, "is a session, which says itself");
  check_refused(qkvlab({"--heads", "2"}), 2, "need a FILE of tensors");
}

TEST_CASE("mapping: a model's weights need the number of heads, and say so") {
  const TempFolder folder;
  const std::string out = folder / "out.npz";
  const std::string file = write_arrays(
      folder / "gpt2.npz", {array_of("x", {5, 8}, 1), array_of("h.0.attn.c_attn.weight", {8, 24}, 2),
                            array_of("h.0.attn.c_attn.bias", {24}, 3), array_of("h.0.attn.c_proj.weight", {8, 8}, 4),
                            array_of("h.1.attn.c_attn.weight", {8, 24}, 5)});
  check_refused(qkvlab({"run", file, "-o", out}), 3, "choose with --heads N");
  check_silent(qkvlab({"run", file, "--heads", "2", "-o", out}));
  const std::vector<float> fused = values(file, "h.0.attn.c_attn.weight"), wk = values(out, "wk");
  REQUIRE(wk.size() == 64);
  CHECK(wk[8 + 3] == fused[24 + 8 + 3]);
  CHECK(values(out, "out").size() == 40);
  const Json mapping = inspected({file})["mapping"];
  CHECK(mapping["layers"] == Json({0, 1}));
  REQUIRE(mapping["questions"].size() == 1);
  CHECK(mapping["questions"][0]["flag"] == "--heads N");
  CHECK(mapping["questions"][0]["choices"][1]["value"] == "2");
}

TEST_CASE("mapping: inspect prints the proposal") {
  const Finished alone = qkvlab({"inspect", kModel + "sentence_0.npz"});
  CHECK(alone.exit_code == 0);
  for (const std::string text : {"role    tensor       layout  why", "q       l0.q         HND", "another by --layer",
                                 "tokens  tokens_utf8  N"}) {
    const bool says_it = alone.out.find(text) != std::string::npos;
    CHECK_MESSAGE(says_it, alone.out << " should say: " << text);
  }
  const Finished weights = qkvlab({"inspect", kModel + "weights_layer0.npz"});
  CHECK(weights.exit_code == 0);
  CHECK(weights.out.find("makes no session: the inputs are arrays named x, wq, wk and wv, but x is missing") !=
        std::string::npos);
  const Json joined = inspected({kModel + "sentence_0.npz", "--with", kModel + "weights_layer1.npz"})["mapping"];
  CHECK(joined["heads"] == 4);
  CHECK(joined["layer"] == 1);
  CHECK(joined["tensors"][1]["file"] == kModel + "weights_layer1.npz");
  CHECK(joined["tensors"][1]["layout"] == "I(3O)");
}

TEST_CASE("mapping: a session file over a checkpoint names layouts, layers and heads") {
  const TempFolder folder;
  const std::string out = folder / "out.npz", want = folder / "want.npz";
  write_arrays(folder / "model.npz",
               {array_of("hidden", {2, 5, 8}, 1), array_of("layer.qkv", {24, 8}, 2), array_of("layer.o", {8, 8}, 3)});
  write_text(folder / "a.qkv.json", R"({"qkvlab": 1, "source": {"kind": "projected",
    "x": {"file": "model.npz", "name": "hidden", "layout": "BND", "batch": 1},
    "wq": {"file": "model.npz", "name": "layer.qkv", "layout": "(3O)I"},
    "wk": {"file": "model.npz", "name": "layer.qkv", "layout": "(3O)I"},
    "wv": {"file": "model.npz", "name": "layer.qkv", "layout": "(3O)I"}, "heads": 2},
    "wo": {"file": "model.npz", "name": "layer.o", "layout": "OI"}})");
  check_silent(qkvlab({"run", folder / "a.qkv.json", "-o", out}));
  check_silent(qkvlab({"run", folder / "model.npz", "--map", "x=hidden,wqkv=layer.qkv,wo=layer.o", "--layout",
                       "wqkv=(3O)I,wo=OI", "--heads", "2", "--batch", "1", "-o", want}));
  for (const std::string name : {"x", "wq", "wk", "wv", "attn", "out"}) CHECK(values(out, name) == values(want, name));
  CHECK(values(out, "x")[0] == values(folder / "model.npz", "hidden")[40]);
  CHECK(values(out, "wv")[1] == values(folder / "model.npz", "layer.qkv")[17 * 8]);
}
