// `qkvlab diff`: what it says, what it writes, and its exit codes.
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/tensor_io/npz.h"
#include "core/tensor_io/tensor_file.h"
#include "tests/cli/support.h"

using namespace qkv;
using namespace qkv::test;
using Json = nlohmann::json;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void check_says(const Finished& finished, int code, const std::vector<std::string>& parts) {
  CHECK(finished.exit_code == code);
  CHECK(finished.err == "");
  for (const std::string& part : parts) CHECK_MESSAGE(has(finished.out, part), finished.out << " should say: " << part);
}

const std::string kCausal = kData + "sdpa/causal.npz";

}  // namespace

TEST_CASE("NumPy's numbers and a trained model's layer are equal to ours") {
  const Finished equal = qkvlab({"diff", kCausal, kCausal, "--causal"});
  check_says(equal, 0,
             {"equal, to the last digit: q, k, v, keep\n", "equal, off by at most ", "heads_out (theirs: out)"});
  CHECK(!has(equal.out, "cause"));
  const std::string layer = kData + "multi_head_layer.npz";
  CHECK(qkvlab({"diff", layer, layer, "--causal"}).exit_code == 0);
  CHECK(qkvlab({"diff", layer, layer, "--causal", "--tolerance", "1e-12"}).exit_code == 0);
  CHECK(qkvlab({"diff", layer, layer, "--causal", "--tolerance", "0"}).exit_code == 1);
}

TEST_CASE("a difference is reported with where it is, the cause and how to fix it") {
  const Finished wrong = qkvlab({"diff", kCausal, kCausal});
  check_says(wrong, 1,
             {"attn: 1088 of 1156 cells wrong, off by more than ", "  largest error   ",
              "  first wrong     0.8862   head 0, row 0, column 0  ours 0.11381937, theirs 1\n",
              "  wrong by head   0: 272, 1: 272, 2: 272, 3: 272\n",
              "\nLikely cause, in theirs: there is a causal mask, none in ours\n",
              "  to fix it     Switch the causal mask off there, or on here.\n"});
  const std::string half = kData + "sdpa/rope_half.npz";
  check_says(qkvlab({"diff", half, half, "--causal", "--rope", "interleaved"}), 1,
             {"in theirs: the rotary embedding is half, not interleaved\n"});
  check_says(qkvlab({"diff", kData + "sdpa/gqa_8_2.npz", kData + "sdpa/gqa_8_2.npz", "--causal", "--scale", "0.5"}), 1,
             {"in theirs: the scale is 1/√d_k\n"});
}

TEST_CASE("every reference case under the options of another names what was changed") {
  struct Case {
    std::string name, id;
    std::vector<std::string> ours;
  };
  const Case cases[] = {{"window_causal", "window-one-less", {"--causal", "--window", "5"}},
                        {"window_both_sides", "window-one-more", {"--window", "2"}},
                        {"alibi_8", "alibi-added", {"--causal"}},
                        {"sink", "sink-missing", {"--causal"}},
                        {"softcap", "softcap-missing", {}},
                        {"causal_cross_top_left", "causal-align", {"--causal"}},
                        {"causal_cross_bottom_right", "causal-align", {"--causal", "--align", "top_left"}},
                        {"padding", "padding-other", {}},
                        {"scale_one", "scale-missing", {}}};
  for (const Case& each : cases) {
    CAPTURE(each.name);
    const std::string file = kData + "sdpa/" + each.name + ".npz";
    std::vector<std::string> words = {"diff", file, file, "--json"};
    words.insert(words.end(), each.ours.begin(), each.ours.end());
    const Finished finished = qkvlab(words);
    CHECK(finished.exit_code == 1);
    const Json json = Json::parse(finished.out);
    CHECK(json["equal"] == false);
    const Json& explanations = json["cause"]["explanations"];
    // What ours lack, theirs have: a sink or a cap that nobody could guess is no usual mistake.
    if (each.id == "sink-missing" || each.id == "softcap-missing") {
      CHECK((explanations.empty() || explanations[0]["causes"][0]["id"] != each.id));
    } else {
      REQUIRE(!explanations.empty());
      CHECK(explanations[0]["causes"][0]["id"] == each.id);
      CHECK(explanations[0]["complete"] == true);
    }
  }
}

TEST_CASE("--json holds the numbers, -o the differences") {
  const TempFolder folder;
  const std::string out = folder / "diff.npz";
  const Finished finished = qkvlab({"diff", kCausal, kCausal, "--json", "-o", out});
  CHECK(finished.exit_code == 1);
  const Json json = Json::parse(finished.out);
  CHECK(json["tolerance"] == 1e-5);
  const Json* attn = nullptr;
  for (const Json& matrix : json["matrices"]) {
    if (matrix["matrix"] == "attn") attn = &matrix;
  }
  REQUIRE(attn != nullptr);
  CHECK((*attn)["wrong"] == 1088);
  CHECK((*attn)["first_wrong"]["theirs"] == 1.0);
  CHECK((*attn)["heads"].size() == 4);
  CHECK((*attn)["largest"]["head"] == 1);
  CHECK(json["cause"]["explanations"][0]["causes"][0]["fix"] == "Switch the causal mask off there, or on here.");
  const Result<TensorFile> file = TensorFile::open(out);
  REQUIRE(file.ok());
  const Result<Tensor> diff = file.value().read("diff_attn");
  REQUIRE(diff.ok());
  CHECK(diff.value().shape == std::vector<std::uint64_t>{4, 17, 17});
  CHECK(diff.value().values[0] == doctest::Approx(1 - 0.11381937).epsilon(1e-6));
  CHECK(file.value().find("diff_heads_out") != nullptr);
}

TEST_CASE("arrays by other names, sessions, and numbers in half precision") {
  const TempFolder folder;
  check_silent(qkvlab({"run", "thinking_machines", "--precision", "bfloat16", "-o", folder / "half.npz"}));
  check_says(qkvlab({"diff", "thinking_machines", folder / "half.npz"}), 1,
             {"in theirs: the precision\n", "Rounding every step to bfloat16 makes errors of this size."});
  check_says(qkvlab({"diff", "thinking_machines", folder / "half.npz", "--tolerance", "0.02"}), 0, {"equal, off by"});
  check_says(qkvlab({"diff", "long_distance", "long_distance_causal"}), 1,
             {"causal: off here, on there\n", "row 0 (他), column 1 (10)", "there is a causal mask, none in ours"});
  check_says(qkvlab({"diff", "cat_sleeps", "cat_sleeps"}), 0, {"equal, to the last digit: "});

  const TensorFile reference = TensorFile::open(kCausal).value();
  const Tensor attn = reference.read("attn").value(), out = reference.read("out").value();
  const Result<Bytes> bytes = npz_bytes({{"weights", attn.shape, attn.values}, {"o", {1, 4, 17, 8}, out.values}});
  REQUIRE(bytes.ok());
  write_text(folder / "mine.npz", as_text(bytes.value()));
  check_says(qkvlab({"diff", kCausal, folder / "mine.npz", "--causal", "--name", "weights=attn", "--name", "o[0]=out"}),
             0, {"equal, off by at most ", "attn (theirs: weights), heads_out (theirs: o[0])"});
  check_refused(qkvlab({"diff", kCausal, folder / "mine.npz"}), 3,
                "mine.npz: nothing in it can be compared by its name: say which array is which, on the command line "
                "with --name THEIRS=attn");
  check_refused(qkvlab({"diff", kCausal, folder / "mine.npz", "--name", "a=attn"}), 2, "has no array \"a\"");
  check_refused(qkvlab({"diff", kCausal, folder / "mine.npz", "--name", "weights"}), 2,
                "--name: \"weights\" is not THEIRS=ours");
}

TEST_CASE("what diff refuses") {
  const TempFolder folder;
  check_refused(qkvlab({"diff", kCausal}), 2, "OTHER is required");
  check_refused(qkvlab({"diff", kCausal, folder / "none.npz"}), 3, "no such file");
  check_refused(qkvlab({"diff", kCausal, kCausal, "--tolerance", "-1"}), 2, "is not a number from 0 up to 1");
  check_refused(qkvlab({"diff", kCausal, kCausal, "--tolerance", "x"}), 2, "is not a number");
  check_refused(qkvlab({"diff", kCausal, kData + "sdpa/cross.npz"}), 3, "has the shape (2, 4, 16), but q here is");
  check_refused(qkvlab({"diff", kCausal, kCausal, "-o", folder / "no/diff.npz"}), 5, "cannot write");
  check_refused(qkvlab({"diff", kCausal, kCausal, "-o", kCausal}), 2, "is the input file");
  check_refused(qkvlab({"diff", "cat_sleeps", "worked_example", "--name", "a=attn"}), 2, "is a session");
  write_text(folder / "bad.npz", "PK but no zip");
  check_refused(qkvlab({"diff", kCausal, folder / "bad.npz"}), 3, "bad.npz: ");
  const Finished help = qkvlab({"diff", "--help"});
  CHECK(help.exit_code == 0);
  CHECK(has(help.out, "Usage: qkvlab diff FILE OTHER [options]"));
  CHECK(has(help.out, "Exit codes: 0 equal, 1 a cell is wrong, 2 wrong usage, 3 bad input file, 5 cannot write."));
}

TEST_CASE("the comparison is written as a figure where -o names one") {
  const TempFolder folder;
  for (const char* name : {"f.svg", "f.png", "f.pdf"}) {
    const Finished finished = qkvlab({"diff", kCausal, kCausal, "-o", folder / name});
    check_says(finished, 1, {"Likely cause"});
    const std::string figure = read_text(folder / name);
    CHECK(figure.starts_with(std::string(name) == "f.svg"   ? "<?xml"
                             : std::string(name) == "f.png" ? "\x89PNG"
                                                            : "%PDF"));
  }
  const std::string svg = read_text(folder / "f.svg");
  for (const char* text :
       {">Ours<", ">Theirs<", ">Theirs − ours<", "head 1 of 4 · against causal.npz",
        "1088 of 1156 cells wrong, off by more than ", "in theirs: there is a causal mask, none in ours"}) {
    CHECK_MESSAGE(has(svg, text), text);
  }
  const std::vector<std::string> words = {"diff", kCausal, kCausal, "-o", folder / "g.svg"};
  auto with = words;
  with.insert(with.end(), {"--matrix", "heads_out", "--head", "2", "--theme", "dark", "--cell-px", "9"});
  CHECK(qkvlab(with).exit_code == 1);
  CHECK(has(read_text(folder / "g.svg"), "head 3 of 4"));
  CHECK(has(read_text(folder / "g.svg"), ">heads_out<"));
}

TEST_CASE("flags of a figure without one, and wrong ones, are refused before or after the work") {
  const TempFolder folder;
  const std::vector<std::string> words = {"diff", kCausal, kCausal};
  const auto refused = [&](std::vector<std::string> more, const std::string& text) {
    more.insert(more.begin(), words.begin(), words.end());
    check_refused(qkvlab(more), 2, text);
  };
  refused({"--theme", "dark"}, "--theme: is about a figure; let the name after -o end in .png, .svg or .pdf");
  refused({"-o", folder / "a.npz", "--transparent"}, "--transparent: is about a figure");
  refused({"--head", "1"}, "--head: is about a figure");
  refused({"-o", folder / "a.svg", "--matrix", "out2"}, "--matrix: \"out2\" was not compared; there are q, k, v");
  refused({"-o", folder / "a.svg", "--head", "4"}, "--head");
  refused({"-o", folder / "a.svg", "--matrix", "keep", "--head", "0"}, "--head: keep is one matrix here");
  refused({"-o", folder / "a.svg", "--cell-px", "0"}, "--cell-px");
  CHECK(folder.names().empty());
}
