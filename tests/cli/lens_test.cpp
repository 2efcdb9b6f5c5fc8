// `qkvlab run --gradient` and `--precision`: the arrays that they add or change, and what they refuse.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/attention/number_format.h"
#include "core/tensor_io/tensor_file.h"
#include "tests/cli/support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

TensorFile opened(const std::string& path) {
  Result<TensorFile> file = TensorFile::open(path);
  REQUIRE_MESSAGE(file.ok(), path);
  return std::move(file).value();
}

std::vector<double> values(const TensorFile& file, const std::string& name) {
  Result<Tensor64> tensor = file.read_float64(name);
  REQUIRE_MESSAGE(tensor.ok(), name);
  return std::move(tensor).value().values;
}

std::vector<std::string> names(const TensorFile& file) {
  std::vector<std::string> result;
  for (const TensorInfo& array : file.tensors()) result.push_back(array.name);
  return result;
}

}  // namespace

TEST_CASE("--precision float64 writes float64 arrays that agree with NumPy's to its own rounding") {
  struct Case {
    std::string name;
    std::vector<std::string> words;
  };
  const Case cases[] = {{"plain", {}},
                        {"rope_half", {"--rope", "half", "--causal"}},
                        {"gqa_8_2", {"--causal"}},
                        {"alibi_6", {"--alibi", "--causal"}},
                        {"sink", {"--sink", "0,1,-2,5", "--causal"}}};
  for (const Case& each : cases) {
    CAPTURE(each.name);
    const TempFolder folder;
    const std::string file = kData + "sdpa/" + each.name + ".npz";
    std::vector<std::string> words{"run", file, "--precision", "float64", "-o", folder / "out.npz"};
    words.insert(words.end(), each.words.begin(), each.words.end());
    check_silent(qkvlab(words));
    const TensorFile want = opened(file), got = opened(folder / "out.npz");
    CHECK(names(got) ==
          std::vector<std::string>{"q", "k", "v", "scores", "scaled", "keep", "attn", "heads_out", "concat"});
    CHECK(got.find("scores")->dtype == "float64");
    CHECK(got.find("keep")->dtype == "uint8");
    for (const auto& [ours, reference] : {std::pair("scores", "scores"), std::pair("scaled", "scaled"),
                                          std::pair("attn", "attn"), std::pair("heads_out", "out")}) {
      const std::string name = ours;
      const std::vector<double> expected = values(want, reference), written = values(got, name);
      REQUIRE(written.size() == expected.size());
      double worst = 0;
      for (std::size_t i = 0; i < written.size(); ++i) worst = std::max(worst, std::abs(written[i] - expected[i]));
      // Sums of 8 products of about 1, in another order: float64's rounding, 1e-16 a term.
      CHECK_MESSAGE(worst <= 1e-14, name << " is off by " << worst);
    }
  }
}

TEST_CASE("--precision bfloat16 writes numbers of the format, and --verbose how far they are from float64") {
  const TempFolder folder;
  const std::string file = kData + "multi_head_layer.npz";
  check_silent(qkvlab({"run", file, "--causal", "--precision", "bfloat16", "-o", folder / "out.npz"}));
  const TensorFile got = opened(folder / "out.npz");
  for (const std::string name : {"x", "wq", "q", "scores", "scaled", "attn", "heads_out", "concat", "out"}) {
    CHECK(got.find(name)->dtype == "float32");
    bool fits = true;
    for (const double value : values(got, name)) {
      fits = fits && static_cast<double>(round_to(NumberFormat::kBfloat16, static_cast<float>(value))) == value;
    }
    CHECK_MESSAGE(fits, name);
  }
  CHECK(got.find("bq")->shape.size() == 1);
  const Finished told =
      qkvlab({"run", file, "--causal", "--precision", "bfloat16", "-o", folder / "out.npz", "--verbose"});
  CHECK(told.exit_code == 0);
  CHECK(told.out.find("out: off by at most 0.0") != std::string::npos);
  CHECK(told.out.find("attn 3: off by at most 0.0") != std::string::npos);
  CHECK(told.out.find("infinite") == std::string::npos);
  const Finished huge = qkvlab({"run", kData + "sdpa/huge_logits.npz", "--precision", "float16", "--scale", "1e6", "-o",
                                folder / "out.npz", "--verbose"});
  CHECK(huge.exit_code == 0);
  CHECK(huge.out.find(" infinite") != std::string::npos);
}

TEST_CASE("--gradient adds an array for each, in its shape") {
  const TempFolder folder;
  const std::string file = kData + "multi_head_layer.npz";
  check_silent(qkvlab({"run", file, "--causal", "--gradient", "sum-of-squares", "-o", folder / "out.npz"}));
  const TensorFile got = opened(folder / "out.npz");
  for (const std::string name : {"x", "wq", "wk", "wv", "bq", "bk", "bv", "q", "k", "v", "scores", "scaled", "attn",
                                 "heads_out", "concat", "wo", "bo", "out"}) {
    CAPTURE(name);
    REQUIRE(got.find("d_" + name) != nullptr);
    CHECK(got.find("d_" + name)->shape == got.find(name)->shape);
    CHECK(got.find("d_" + name)->dtype == "float32");
  }
  CHECK(got.find("d_keep") == nullptr);
  const std::vector<double> out = values(got, "out"), d_out = values(got, "d_out");
  for (std::size_t i = 0; i < out.size(); ++i) CHECK(d_out[i] == doctest::Approx(2 * out[i]).epsilon(1e-6));
}

TEST_CASE("--gradient of one cell: its row of weights is its gradient by V") {
  const TempFolder folder;
  const Finished told = qkvlab({"run", kData + "sdpa/gqa_8_2.npz", "--sink", "0,0,0,0,0,0,0,0", "--gradient",
                                "heads_out:5:3:2", "--precision", "float64", "-o", folder / "out.npz", "--verbose"});
  CHECK(told.exit_code == 0);
  const TensorFile got = opened(folder / "out.npz");
  CHECK(got.find("d_v")->dtype == "float64");
  CHECK(got.find("d_sink")->shape == std::vector<std::uint64_t>{8});
  const std::vector<double> attn = values(got, "attn"), d_v = values(got, "d_v");
  for (std::size_t key = 0; key < 10; ++key) {
    for (std::size_t col = 0; col < 8; ++col) {
      const double weight = attn[(5 * 10 + 3) * 10 + key];
      CHECK(d_v[(1 * 10 + key) * 8 + col] == (col == 2 ? weight : 0));  // head 5 reads the second of the two
    }
  }
  CHECK(told.out.starts_with("gradient of O[3, 2] of head 5 = "));
}

TEST_CASE("targets and formats that cannot be are refused, with what is allowed") {
  const TempFolder folder;
  const std::string file = kData + "sdpa/plain.npz", out = folder / "out.npz";
  for (const std::string text : {"squares", "out", "out:", "out:1", "out:1:2:3", "out:-1:0", "out:1:0x", "attn:0:1",
                                 "q:0:1:2", "attn:0:1:99999999999999999999"}) {
    check_refused(qkvlab({"run", file, "--gradient", text, "-o", out}), 2,
                  "--gradient: \"" + text + "\" is not sum-of-squares, out:ROW:COL, concat:ROW:COL, nor heads_out");
  }
  check_refused(qkvlab({"run", file, "--gradient", "out:0:0", "-o", out}), 2,
                "--gradient: out is not there: this session has no wo");
  check_refused(qkvlab({"run", file, "--gradient", "attn:0:7:0", "-o", out}), 2,
                "attn has no cell at row 7, column 0: rows are 0 to 6, columns 0 to 6");
  check_refused(qkvlab({"run", file, "--precision", "half", "-o", out}), 2,
                "--precision: there is no \"half\"; there are float64, float32, bfloat16, float16");
  CHECK(folder.names().empty());
}

TEST_CASE("render draws through a lens what run writes") {
  const TempFolder folder;
  const std::string file = kData + "sdpa/plain.npz";
  const auto has = [&](const std::string& name, const std::string& text) {
    return read_text(folder / name).find(text) != std::string::npos;
  };
  check_silent(qkvlab({"render", file, "--lens", "gradient", "-o", folder / "head.svg"}));
  CHECK(has("head.svg", ">∂L/∂Q"));
  CHECK(has("head.svg", "∂ Σ O² / ∂ ·"));
  check_silent(qkvlab({"render", file, "--lens", "gradient", "--target", "attn:1:2:3", "--matrix", "q", "--head", "1",
                       "-o", folder / "q.svg"}));
  CHECK(has("q.svg", "∂ A[3, 4] of head 2 / ∂ ·"));
  check_silent(qkvlab({"render", file, "--lens", "bfloat16", "--view", "heads", "-o", folder / "heads.png", "--layout",
                       folder / "heads.json"}));
  CHECK(has("heads.json", "\"shows\": \"bfloat16\""));
  check_silent(qkvlab({"run", file, "--gradient", "sum-of-squares", "-o", folder / "run.npz"}));
  check_silent(qkvlab({"render", file, "--lens", "gradient", "--matrix", "scores", "-o", folder / "s.png", "--layout",
                       folder / "s.json"}));
  const TensorFile arrays = opened(folder / "run.npz");
  const std::vector<double> scores = values(arrays, "d_scores");
  const std::size_t head = scores.size() / arrays.find("d_scores")->shape[0];
  double largest = 0;
  for (std::size_t i = 0; i < head; ++i) largest = std::max(largest, std::abs(scores[i]));
  const auto layout = nlohmann::json::parse(read_text(folder / "s.json"));
  CHECK(layout["matrices"][0]["range"][1].get<double>() == doctest::Approx(largest).epsilon(1e-6));
}

TEST_CASE("render refuses a lens, or a target, that there is not") {
  const TempFolder folder;
  const std::string file = kData + "sdpa/plain.npz";
  const auto refused = [&](std::vector<std::string> more, const std::string& text) {
    more.insert(more.begin(), {"render", file, "-o", folder / "x.svg"});
    check_refused(qkvlab(more), 2, text);
  };
  refused({"--lens", "double"}, "--lens: ");
  refused({"--target", "sum-of-squares"}, "--target: says what the gradient is of; give it with --lens gradient");
  refused({"--lens", "float16", "--target", "attn:0:0:0"}, "--target: says what the gradient is of");
  refused({"--lens", "gradient", "--target", "q:0:0:0"}, "--target: ");
  refused({"--lens", "gradient", "--target", "attn:0:999:0"}, "--target: ");
  CHECK(folder.names().empty());
}
