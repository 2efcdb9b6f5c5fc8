// `qkvlab run`: the numbers and the arrays that it writes.
#include <cmath>
#include <limits>

#include "core/session/session_file.h"
#include "core/tensor_io/npz.h"
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

// Four float32 ulp of the largest value: every cell is rounded to float32 once (half an ulp of its own), and the
// reference is NumPy's float64 in another order of summation.
double tolerance(const std::vector<double>& want) {
  double largest = 0;
  for (const double value : want) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  const auto magnitude = static_cast<float>(largest);
  return 4 * static_cast<double>(std::nextafter(magnitude, std::numeric_limits<float>::infinity()) - magnitude);
}

void check_equal(const std::vector<double>& got, const std::vector<double>& want, const std::string& what,
                 double allowed) {
  REQUIRE(got.size() == want.size());
  double worst = 0;
  bool classes_agree = true;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isfinite(want[i])) worst = std::max(worst, std::abs(got[i] - want[i]));
    classes_agree = classes_agree && std::isnan(got[i]) == std::isnan(want[i]);
  }
  CHECK_MESSAGE(classes_agree, what);
  CHECK_MESSAGE(worst <= allowed, what << " is off by " << worst);
}

// The manifest's bias. Its decimals are float64 in the reference, half an ulp of 4.015 from the program's at most.
const std::string kBias =
    R"({"bias": [[1.564, 0.716, -0.656, 0.017, -0.927, 2.31], [1.025, 4.015, -0.73, 2.925, -1.149, -0.333],
                 [-2.087, 1.062, -0.109, 1.259, 3.005, -0.101], [0.775, 1.818, -0.107, -1.087, 0.73, 1.023],
                 [1.579, 1.684, -1.329, 0.906, 2.484, -0.918], [0.742, -1.229, 0.349, 3.498, 0.361, -1.924]]})";

struct Case {
  std::string name;
  std::vector<std::string> words = {};
};

const Case kCases[] = {
    {"plain"},
    {"one_token"},
    {"one_dim"},
    {"odd_sizes"},
    {"cross"},
    {"tile_edges"},
    {"causal", {"--causal"}},
    {"causal_cross_bottom_right", {"--options", R"({"causal": true, "align": "bottom_right"})"}},
    {"causal_cross_top_left", {"--causal", "--align", "top_left"}},
    {"window_causal", {"--causal", "--window", "4"}},
    {"window_both_sides", {"--window", "3"}},
    {"padding", {"--key-valid", "1,1,1,1,1,1,0,0,0"}},
    {"padding_all", {"--options", R"({"key_valid": [0, 0, 0, 0]})"}},
    {"bias", {"--options", kBias}},
    {"scale_one", {"--scale", "1"}},
    {"softcap", {"--softcap", "20"}},
    {"alibi_8", {"--alibi", "--causal"}},
    {"alibi_6", {"--options", R"({"alibi": true, "causal": true})"}},
    {"rope_half", {"--rope", "half", "--causal"}},
    {"rope_interleaved", {"--rope", "interleaved", "--rope-base", "10000"}},
    {"sink", {"--sink", "0,1,-2,5", "--causal"}},
    {"gqa_8_2", {"--causal"}},
    {"mqa_4_1"},
    {"huge_logits"},
    {"huge_equal"},
    {"long_row"},
};

}  // namespace

TEST_CASE("run gives the numbers of the worked example") {
  const TempFolder folder;
  check_silent(qkvlab({"run", "worked_example", "-o", folder / "out.npz"}));
  CHECK(folder.names() == std::vector<std::string>{"out.npz"});
  const TensorFile out = opened(folder / "out.npz");
  const std::vector<double> attn = values(out, "attn"), heads_out = values(out, "heads_out");
  const double third = 1.0 / 3;
  const std::vector<double> want_attn{.1361, .4319, .4319, .6134, .1933, .1933, third, third, third};
  const std::vector<double> want_out{1.0000, 1.2958, .5681, 1.0000, .5799, .8067, 1.0000, 1.0000, .6667};
  check_equal(attn, want_attn, "attn", 5e-5);
  check_equal(heads_out, want_out, "heads_out", 5e-5);
  check_equal(values(out, "scores"), {1, 3, 3, 5, 3, 3, 3, 3, 3}, "scores", 0);
}

TEST_CASE("run agrees with the reference tensors") {
  for (const Case& each : kCases) {
    CAPTURE(each.name);
    const TempFolder folder;
    const std::string file = kData + "sdpa/" + each.name + ".npz";
    std::vector<std::string> words{"run", file, "-o", folder / "out.npz"};
    words.insert(words.end(), each.words.begin(), each.words.end());
    check_silent(qkvlab(words));
    const TensorFile want = opened(file), got = opened(folder / "out.npz");
    for (const std::string name : {"scores", "scaled", "attn"}) {
      const std::vector<double> expected = values(want, name);
      check_equal(values(got, name), expected, name, tolerance(expected));
    }
    // The largest value in play of a weighted sum is a V that it weighs, which may cancel to a smaller output.
    const double in_play = std::max(tolerance(values(want, "out")), tolerance(values(want, "v")));
    check_equal(values(got, "heads_out"), values(want, "out"), "heads_out", in_play);
  }
}

TEST_CASE("run computes a layer with projections, biases and an output projection") {
  const TempFolder folder;
  const std::string file = kData + "multi_head_layer.npz";
  check_silent(qkvlab({"run", file, "--causal", "-o", folder / "out.npz"}));
  const TensorFile want = opened(file), got = opened(folder / "out.npz");
  for (const std::string name : {"q", "k", "v", "attn", "heads_out", "concat", "out", "x", "wq", "bo"}) {
    const std::vector<double> expected = values(want, name);
    // Q, K and V are rounded to float32 before they are used; the sums of the later steps carry that along.
    check_equal(values(got, name), expected, name, 2 * tolerance(expected));
  }
}

TEST_CASE("run writes every array with its name, type and shape") {
  const TempFolder folder;
  check_silent(qkvlab({"run", kData + "sdpa/gqa_8_2.npz", "-o", folder / "out.npz"}));
  const TensorFile in = opened(kData + "sdpa/gqa_8_2.npz"), out = opened(folder / "out.npz");
  std::vector<std::string> names;
  for (const TensorInfo& array : out.tensors()) {
    names.push_back(array.name);
    CHECK(array.dtype == (array.name == "keep" ? "uint8" : "float32"));
  }
  CHECK(names == std::vector<std::string>{"q", "k", "v", "scores", "scaled", "keep", "attn", "heads_out", "concat"});
  const auto q = in.find("q")->shape, v = in.find("v")->shape;
  const std::uint64_t heads = q[0], nq = q[1], nk = v[1], dv = v[2];
  using Shape = std::vector<std::uint64_t>;
  CHECK(out.find("q")->shape == q);
  CHECK(out.find("v")->shape == v);
  CHECK(out.find("attn")->shape == Shape{heads, nq, nk});
  CHECK(out.find("keep")->shape == Shape{nq, nk});
  CHECK(out.find("heads_out")->shape == Shape{heads, nq, dv});
  CHECK(out.find("concat")->shape == Shape{nq, heads * dv});
}

TEST_CASE("flags go over --options, which goes over the file") {
  const TempFolder folder;
  Session session = worked_example();
  session.problem.options.causal = true;
  session.problem.options.scale = 3;
  REQUIRE(write_session(session, folder / "three.qkv.json").ok());
  const auto scaled = [&](std::vector<std::string> words) {
    std::vector<std::string> all{"run", folder / "three.qkv.json", "-o", folder / "out.npz"};
    all.insert(all.end(), words.begin(), words.end());
    check_silent(qkvlab(all));
    const TensorFile out = opened(folder / "out.npz");
    return std::pair(values(out, "scaled")[3], values(out, "attn")[1]);  // scores 5; a cell above the diagonal
  };
  CHECK(scaled({}) == std::pair(15.0, 0.0));
  CHECK(scaled({"--options", R"({"scale": 2})"}) == std::pair(10.0, 0.0));
  CHECK(scaled({"--scale", "1", "--options", R"({"scale": 2})"}) == std::pair(5.0, 0.0));
  CHECK(scaled({"--no-causal"}).second > 0);
  CHECK(scaled({"--options", R"({"causal": false})", "--causal"}).second == 0);
  CHECK(scaled({"--options", R"({"softcap": 1})", "--softcap", "1e9"}) == std::pair(15.0, 0.0));
  CHECK(scaled({"--alibi"}).first < 15);
  CHECK(scaled({"--options", R"({"alibi": true})", "--no-alibi"}).first == 15);
  write_text(folder / "options.json", R"({"scale": 4})");
  CHECK(scaled({"--options", "@" + (folder / "options.json")}) == std::pair(20.0, 0.0));
}

TEST_CASE("--bias adds the array of a file, goes over --options, and none takes it away") {
  const TempFolder folder;
  const std::vector<float> numbers{0, 1, 2, 3, 4, 5, 6, 7, -std::numeric_limits<float>::infinity()};
  const std::vector<std::uint64_t> shape{3, 3};
  write_text(folder / "b.npy", std::string(as_text(npy_bytes(shape, numbers))));
  const std::vector<NamedArray> arrays{{"q", {1}, std::vector<float>{0}}, {"mine", shape, numbers}};
  const Result<Bytes> npz = npz_bytes(arrays);
  REQUIRE(npz.ok());
  write_text(folder / "b.npz", std::string(as_text(npz.value())));
  write_text(folder / "odd:name.npy", read_text(folder / "b.npy"));
  const auto written = [&](std::vector<std::string> words) {
    std::vector<std::string> all{"run", "worked_example", "--scale", "1", "-o", folder / "out.npz"};
    all.insert(all.end(), words.begin(), words.end());
    check_silent(qkvlab(all));
    return opened(folder / "out.npz");
  };
  const std::vector<double> scores{1, 3, 3, 5, 3, 3, 3, 3, 3};
  for (const std::string bias : {"b.npy", "b.npz:mine", "odd:name.npy"}) {
    CAPTURE(bias);
    const TensorFile out = written({"--bias", folder / bias});
    std::vector<double> want = scores;
    for (std::size_t i = 0; i < 9; ++i) want[i] += static_cast<double>(numbers[i]);
    CHECK(values(out, "scaled") == want);
    CHECK(values(out, "bias") == std::vector<double>(numbers.begin(), numbers.end()));
    CHECK(out.find("bias")->shape == shape);
    CHECK(values(out, "attn")[8] == 0);  // −Inf hides a key
  }
  const std::string ones = R"({"bias": [[1, 1, 1], [1, 1, 1], [1, 1, 1]]})";
  CHECK(values(written({"--options", ones, "--bias", folder / "b.npy"}), "scaled")[1] == 4);
  const TensorFile none = written({"--options", ones, "--bias", "none"});
  CHECK(values(none, "scaled") == scores);
  CHECK(none.find("bias") == nullptr);
  const Finished told = qkvlab({"inspect", "worked_example"});
  CHECK(told.out.find("bias") == std::string::npos);
}

TEST_CASE("run writes what ALiBi adds, head by head") {
  const TempFolder folder;
  check_silent(qkvlab({"run", kData + "sdpa/plain.npz", "--alibi", "-o", folder / "out.npz"}));
  const TensorFile out = opened(folder / "out.npz");
  const std::vector<std::uint64_t> shape = out.find("alibi")->shape;
  CHECK(shape == out.find("scores")->shape);
  const std::vector<double> alibi = values(out, "alibi");
  const std::uint64_t nk = shape[2];
  CHECK(alibi[0] == 0);
  // Two heads: slopes 2^-4 and 2^-8.
  REQUIRE(shape[0] == 2);
  CHECK(alibi[2] == -2 * 0x1p-4);
  CHECK(alibi[shape[1] * nk + 2] == -2 * 0x1p-8);
}

TEST_CASE("names of files may be of any language, and the same input gives the same bytes") {
  const TempFolder folder;
  const std::string in = folder / "注意力 é.npz", out = folder / "輸出 ü.npz", again = folder / "again.npz";
  std::filesystem::copy_file(kData + "sdpa/plain.npz", in);
  check_silent(qkvlab({"run", in, "-o", out}));
  check_silent(qkvlab({"run", in, "-o", again}));
  CHECK(read_text(out) == read_text(again));
  const Finished told = qkvlab({"run", in, "-o", out, "--verbose"});
  CHECK(told.exit_code == 0);
  CHECK(told.out == "wrote " + out + " (9 arrays)\n");
}

TEST_CASE("a locale with decimal commas changes no number") {
  const TempFolder folder;
  const std::string locale = folder / "de_DE.UTF-8";
  if (run_process({"localedef", "-i", "de_DE", "-f", "UTF-8", locale}).exit_code != 0) {
    MESSAGE("skipped: localedef has no de_DE here (Debian package locales)");
    return;
  }
  const Environment german{{"LC_ALL", "de_DE.UTF-8"}, {"LOCPATH", folder.path().string()}};
  REQUIRE(write_session(worked_example(), folder / "session.qkv.json").ok());
  for (const std::string& file : {kData + "sdpa/plain.npz", folder / "session.qkv.json"}) {
    check_silent(qkvlab({"run", file, "--scale", "0.25", "-o", folder / "german.npz"}, german));
    check_silent(qkvlab({"run", file, "--scale", "0.25", "-o", folder / "plain.npz"}));
    CHECK(read_text(folder / "german.npz") == read_text(folder / "plain.npz"));
  }
  check_silent(qkvlab({"render", "worked_example", "-o", folder / "german.png", "--range", "-1.5,2.5"}, german));
  check_silent(qkvlab({"render", "worked_example", "-o", folder / "plain.png", "--range", "-1.5,2.5"}));
  CHECK(read_text(folder / "german.png") == read_text(folder / "plain.png"));
}

TEST_CASE("--only writes the arrays that it names") {
  const TempFolder folder;
  check_silent(qkvlab({"run", "worked_example", "--only", "attn,heads_out", "-o", folder / "out.npz"}));
  const TensorFile file = opened(folder / "out.npz");
  CHECK(file.tensors().size() == 2);
  CHECK(file.find("attn") != nullptr);
  CHECK(file.find("heads_out") != nullptr);
  check_refused(qkvlab({"run", "worked_example", "--only", "attn,weights", "-o", folder / "no.npz"}), 2, "weights");
}

TEST_CASE("scores that are too large to be written are refused before they are computed, the rest is not") {
  const TempFolder folder;
  constexpr std::uint64_t kTokens = 16384;  // 3 GiB of scores, scaled and attn
  const std::vector<std::uint64_t> shape{1, kTokens, 1};
  std::vector<NamedArray> arrays;
  for (const char* name : {"q", "k", "v"}) arrays.push_back({name, shape, std::vector<float>(kTokens, 1.0f)});
  const Result<Bytes> npz = npz_bytes(arrays);
  REQUIRE(npz.ok());
  write_text(folder / "large.npz", std::string(as_text(npz.value())));
  const std::vector<std::string> words{"run", folder / "large.npz", "-o", folder / "out.npz"};
  const auto with = [&words](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return qkvlab(more);
  };
  check_refused(with({}), 3, "1×16384×16384 cells take 3.0 GiB: write what is smaller with --only");
  check_refused(with({"--only", "attn"}), 3, "3.0 GiB");
  check_refused(with({"--only", "heads_out", "--gradient", "sum-of-squares"}), 3, "--gradient");
  check_refused(qkvlab({"render", folder / "large.npz", "-o", folder / "out.png"}), 3, "too large");
  check_silent(with({"--only", "heads_out"}));
  // Equal scores: every output is the mean of equal values, with a sum of 16,384 weights rounded on the way.
  const std::vector<double> out = values(opened(folder / "out.npz"), "heads_out");
  REQUIRE(out.size() == kTokens);
  for (const double value : out) CHECK(value == doctest::Approx(1).epsilon(1e-5));
}
