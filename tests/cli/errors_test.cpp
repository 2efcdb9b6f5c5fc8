// Wrong usage, bad files and outputs that cannot be written: the exit code, one line, and nothing left behind.
#include <unistd.h>

#include <algorithm>

#include "core/tensor_io/npz.h"
#include "tests/cli/support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

struct BadFile {
  std::string name;
  std::string content;
  std::string says;
};

std::string npy(const std::string& header_text) {
  std::string header = header_text;
  header.resize(117, ' ');
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n" + std::string(24, '\0');
}

std::string npz_without_v() {
  const std::vector<NamedArray> arrays{{"q", {1, 2, 2}, std::vector<float>(4, 1)},
                                       {"k", {1, 2, 2}, std::vector<float>(4, 1)}};
  const Result<Bytes> bytes = npz_bytes(arrays);
  REQUIRE(bytes.ok());
  return std::string(as_text(bytes.value()));
}

std::string session(const std::string& q, const std::string& more = "") {
  return R"({"qkvlab": 1, "tokens": ["a", "b"], "source": {"kind": "qkv", "q": )" + q +
         R"(, "k": [[[1, 0], [0, 1]]], "v": [[[1, 0], [0, 1]]]})" + more + "}";
}

std::vector<BadFile> bad_files() {
  const std::string good = read_text(kData + "sdpa/plain.npz");
  const std::string q = "[[[1, 2], [3, 4]]]";
  return {
      {"empty.npz", "", ""},
      {"text.npz", "hello, this is no tensor\n", ""},
      {"binary.npz", std::string("\x00\xff\x01\x02qkv", 7), ""},
      {"cut.npz", good.substr(0, good.size() / 2), ""},
      {"head.npz", good.substr(0, 40), ""},
      {"int.npy", npy("{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }"), ""},
      {"short.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (200, 300), }"), ""},
      {"wraps.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }"), ""},
      {"no_v.npz", npz_without_v(), "v"},
      {"comma.qkv.json", R"({"qkvlab": 1, "tokens": ["a",], })", "line 1"},
      {"other.qkv.json", R"({"name": "no session"})", "qkvlab"},
      {"new.qkv.json", R"({"qkvlab": 99})", "99"},
      {"ragged.qkv.json", session("[[[1, 2], [3]]]"), "q"},
      {"tokens.qkv.json", session("[[[1, 2], [3, 4], [5, 6]]]"), "3"},
      {"word.qkv.json", session(R"([[[1, "x"], [3, 4]]])"), "q"},
      {"rope.qkv.json", session(q, R"(, "attention": {"rope": {"base": 10000}})"), "rope"},
      {"key.qkv.json", session(q, R"(, "attention": {"casual": true})"), "casual"},
      {"valid.qkv.json", session(q, R"(, "attention": {"key_valid": [1]})"), "key_valid"},
      {"lost.qkv.json", session(R"({"file": "nowhere.npz", "name": "q"})"), "nowhere.npz"},
      {"deep.qkv.json", R"({"qkvlab": 1, "tokens": )" + std::string(100000, '['), ""},
  };
}

}  // namespace

TEST_CASE("a bad file: exit code 3, one line that names it, nothing written") {
  const TempFolder folder;
  for (const BadFile& file : bad_files()) {
    CAPTURE(file.name);
    write_text(folder / file.name, file.content);
    const std::vector<std::string> before = folder.names();
    for (const std::string command : {"run", "render", "screenshot"}) {
      const std::string out = folder / (command == "run" ? "out.npz" : "out.png");
      const Finished finished = qkvlab({command, folder / file.name, "-o", out});
      check_refused(finished, 3, file.says);
      CHECK(finished.err.starts_with("qkvlab: " + (folder / file.name) + ": "));
    }
    check_refused(qkvlab({folder / file.name}), 3, file.says);
    CHECK(folder.names() == before);
  }
}

TEST_CASE("a file that is not there, is a folder or may not be read: exit code 3") {
  const TempFolder folder;
  for (const std::string command : {"run", "render", "screenshot", "inspect"}) {
    std::vector<std::string> words{command, folder / "none.npz"};
    if (command != "inspect") words.insert(words.end(), {"-o", folder / (command == "run" ? "o.npz" : "o.png")});
    check_refused(qkvlab(words), 3, "none.npz: no such file");
    words[1] = folder.path().string();
    check_refused(qkvlab(words), 3, "is a folder");
  }
  check_refused(qkvlab({"wroked_example"}), 3, "no example");
  if (geteuid() != 0) {
    write_text(folder / "secret.npz", "x");
    std::filesystem::permissions(folder / "secret.npz", std::filesystem::perms::none);
    check_refused(qkvlab({"inspect", folder / "secret.npz"}), 3, "Permission denied");
  }
}

TEST_CASE("wrong usage: exit code 2, one line that says what there is") {
  const TempFolder folder;
  const std::string png = folder / "o.png", npz = folder / "o.npz";
  const std::string two_heads = kData + "sdpa/plain.npz";
  const std::vector<std::pair<std::vector<std::string>, std::string>> table{
      {{"run"}, "FILE is required"},
      {{"run", "worked_example"}, "--out is required"},
      {{"run", "worked_example", "-o"}, "--out"},
      {{"run", "worked_example", "-o", ""}, "empty"},
      {{"run", "worked_example", "-o", npz, "--bogus"}, "--bogus"},
      {{"run", "worked_example", "more", "-o", npz}, "more"},
      {{"run", "worked_example", "-o", npz, "--scale", "1,5"}, "\"1,5\" is not a number"},
      {{"run", "worked_example", "-o", npz, "--align", "left"}, "bottom_right, top_left"},
      {{"run", "worked_example", "-o", npz, "--key-valid", "1,2,0"}, "1,1,0"},
      {{"run", "worked_example", "-o", npz, "--key-valid", "1,0"}, "key_valid"},
      {{"run", "worked_example", "-o", npz, "--options", "{"}, "--options"},
      {{"run", "worked_example", "-o", npz, "--options", R"({"softcap": 0})"},
       "\"softcap\" must be a finite number above 0"},
      {{"run", "worked_example", "-o", npz, "--options", R"({"bias": [[1]]})"}, "bias is 1×1 but there are 3 queries"},
      {{"run", "worked_example", "-o", npz, "--rope", "neox"}, "half, interleaved, none"},
      {{"run", "worked_example", "-o", npz, "--rope", "half"}, "d_k is 3: it needs an even d_k"},
      {{"run", "worked_example", "-o", npz, "--rope-base", "100"}, "--rope-base: there is no rope"},
      {{"run", two_heads, "-o", npz, "--rope", "half", "--rope-base", "1"}, "rope.base is 1"},
      {{"run", "worked_example", "-o", npz, "--softcap", "-2"},
       "softcap is -2: it needs to be a finite number above 0"},
      {{"run", "worked_example", "-o", npz, "--softcap", "0"}, "softcap is 0: it needs to be a finite number above 0"},
      {{"run", "worked_example", "-o", npz, "--scale", "nan"}, "scale is NaN: it needs to be a finite number"},
      {{"run", "worked_example", "-o", npz, "--scale", "inf"}, "scale is inf: it needs to be a finite number"},
      {{"run", "worked_example", "-o", npz, "--options", R"({"scale": "nan"})"},
       "option \"scale\" must be a finite number, or null for 1/√d_k"},
      {{"run", "worked_example", "-o", npz, "--options", R"({"window": 0})"},
       "option \"window\" must be a whole number from 1 to 16777216"},
      {{"run", "worked_example", "-o", npz, "--options", R"({"rope": {"style": "half"}})"},
       "rope turns pairs of columns but d_k is 3: it needs an even d_k"},
      {{"run", two_heads, "-o", npz, "--options", R"({"rope": {"style": "half", "base": 1}})"},
       "rope.base must be a finite number above 1"},
      {{"run", "worked_example", "-o", npz, "--options", R"({"sink": [1, 2]})"},
       "sink has 2 numbers but there is 1 head: it needs one number for each head"},
      {{"run", "worked_example", "-o", npz, "--options", R"({"key_valid": [1, 0]})"},
       "key_valid has 2 entries but there are 3 keys: it needs one entry for each key"},
      {{"run", "worked_example", "-o", npz, "--window", "0"}, "--window: \"0\" is not a whole number from 1"},
      {{"run", "worked_example", "-o", npz, "--sink", "1,,2"}, "--sink: \"\" is not a number"},
      {{"run", "worked_example", "-o", npz, "--sink", "1,2"}, "sink has 2 numbers but there is 1 head"},
      {{"run", "worked_example", "-o", npz, "--sink", "inf"}, "sink[0] is inf"},
      {{"run", "worked_example", "-o", npz, "--options", R"({"casual": true})"}, "casual"},
      {{"render", "worked_example", "-o", folder / "o.jpg"}, "one of .png, .svg, .pdf"},
      {{"render", "worked_example", "-o", folder / "o.svgz"}, "one of .png, .svg, .pdf"},
      {{"render", "worked_example", "-o", png, "--picture-scale", "0.05"}, "from 0.1 to 20"},
      {{"render", "worked_example", "-o", png, "--picture-scale", "21"}, "from 0.1 to 20"},
      {{"render", "worked_example", "-o", png, "--picture-scale", "nan"}, "from 0.1 to 20"},
      {{"render", "worked_example", "-o", png, "--matrix", "scores", "--range", "log"}, "log is for weights"},
      {{"render", kData + "sdpa/long_row.npz", "-o", folder / "o.pdf", "--cell-px", "256"}, "largest scale that fits"},
      {{"screenshot", "worked_example", "-o", folder / "o.svg"}, "ends in .png"},
      {{"render", "worked_example", "-o", png, "--layout", png}, "--layout"},
      {{"render", "worked_example", "-o", png, "--view", "all"}, "matrix, head, heads, concat"},
      {{"render", "worked_example", "-o", png, "--matrix", "weights"}, "scores, alibi, bias, scaled, keep, attn"},
      {{"render", "worked_example", "-o", png, "--matrix", "out"}, "this file has no out"},
      {{"render", "worked_example", "-o", png, "--matrix", "attn", "--view", "heads"}, "--matrix"},
      {{"render", two_heads, "-o", png, "--head", "-1"}, "from 0 to 1"},
      {{"render", two_heads, "-o", png, "--head", "2"}, "from 0 to 1"},
      {{"render", two_heads, "-o", png, "--view", "heads", "--head", "1"}, "--head"},
      {{"render", kData + "sdpa/gqa_8_2.npz", "-o", png, "--matrix", "k", "--head", "2"}, "from 0 to 1"},
      {{"render", "worked_example", "-o", png, "--colormap", "jet"}, "viridis, cividis, magma, grey"},
      {{"render", "worked_example", "-o", png, "--range", "wide"}, "auto, unit, symmetric, log, LO,HI"},
      {{"render", "worked_example", "-o", png, "--range", "1,1"}, "LO must be less than HI"},
      {{"render", "worked_example", "-o", png, "--range", "0,nan"}, "LO must be less than HI"},
      {{"render", "worked_example", "-o", png, "--cell-px", "0"}, "from 1 to 256"},
      {{"render", "worked_example", "-o", png, "--decimals", "7"}, "from 0 to 6"},
      {{"render", "worked_example", "-o", png, "--theme", "blue"}, "light, dark"},
      {{"render", kData + "sdpa/long_row.npz", "-o", png, "--cell-px", "256"}, "largest cell size"},
      {{"screenshot", "worked_example", "-o", png, "--size", "800"}, "1280x800"},
      {{"screenshot", "worked_example", "-o", png, "--size", "99999x800"}, "from 200 to 8192"},
      {{"screenshot", "worked_example", "-o", png, "--scale", "9"}, "0.5 to 4"},
      {{"screenshot", "worked_example", "-o", png, "--size", "8000x800", "--scale", "4"}, "16384"},
      {{"screenshot", "worked_example", "-o", png, "--lens", "half"},
       "there are values, gradient, float32, bfloat16, float16"},
      {{"screenshot", "worked_example", "-o", png, "--tab", "compare"}, "head, heads, concat"},
      {{"inspect"}, "FILE is required"},
      {{"inspect", "worked_example", "--xml"}, "--xml"},
      {{"--bogus"}, "--bogus"},
      {{"worked_example", "more"}, "more"},
  };
  for (const auto& [words, message] : table) {
    const auto& says = message;
    CAPTURE(says);
    check_refused(qkvlab(words), 2, says);
    CHECK(folder.names().empty());
  }
}

TEST_CASE("options from a file: a bad one is a bad file") {
  const TempFolder folder;
  check_refused(qkvlab({"run", "worked_example", "-o", folder / "o.npz", "--options", "@" + (folder / "none.json")}), 3,
                "none.json: cannot be read");
  write_text(folder / "bad.json", "{");
  check_refused(qkvlab({"run", "worked_example", "-o", folder / "o.npz", "--options", "@" + (folder / "bad.json")}), 3,
                "bad.json: ");
  CHECK(folder.names() == std::vector<std::string>{"bad.json"});
}

TEST_CASE("a bias from a file: what is wrong with it names the file, the array and both shapes") {
  const TempFolder folder;
  const auto floats = [](std::string name, std::vector<std::uint64_t> shape) {
    std::uint64_t count = 1;
    for (const std::uint64_t side : shape) count *= side;
    return NamedArray{std::move(name), std::move(shape), std::vector<float>(count, 1)};
  };
  const std::vector<NamedArray> arrays{
      floats("wide", {3, 4}), floats("row", {3}), {"bytes", {3, 4}, std::vector<std::uint8_t>(12, 1)}};
  const Result<Bytes> bytes = npz_bytes(arrays);
  REQUIRE(bytes.ok());
  const std::string file = folder / "b.npz";
  write_text(file, std::string(as_text(bytes.value())));
  write_text(folder / "text.npy", "no array");
  const auto refused = [&](const std::string& bias, int code, const std::string& says) {
    check_refused(qkvlab({"run", "worked_example", "-o", folder / "o.npz", "--bias", bias}), code, says);
  };
  refused(file + ":wide", 3, "b.npz: \"wide\" is 3×4 but there are 3 queries and 3 keys: a bias needs to be 3×3");
  refused(file + ":row", 3, "b.npz: \"row\" has the shape (3,): it must be a matrix [rows, columns]");
  refused(file + ":none", 3, "b.npz: there is no array \"none\"");
  refused(file + ":bytes", 3, "b.npz: \"bytes\" is 3×4");
  refused(file, 2, "b.npz holds 3 arrays; add :NAME with one of wide, row, bytes");
  refused(folder / "none.npy", 3, "none.npy: cannot be read");
  refused(folder / "text.npy", 3, "text.npy: ");
  CHECK(folder.names() == std::vector<std::string>{"b.npz", "text.npy"});
}

TEST_CASE("an output that cannot be written: exit code 5, the reason, no half file") {
  const TempFolder folder;
  for (const std::string command : {"run", "render"}) {
    const std::string ending = command == "run" ? ".npz" : ".png";
    CAPTURE(command);
    check_refused(qkvlab({command, "worked_example", "-o", folder / ("none/o" + ending)}), 5,
                  "No such file or directory");
    write_text(folder / "plain", "a file, no folder");
    check_refused(qkvlab({command, "worked_example", "-o", folder / ("plain/o" + ending)}), 5, "Not a directory");
    std::filesystem::create_directory(folder / ("folder" + ending));
    check_refused(qkvlab({command, "worked_example", "-o", folder / ("folder" + ending)}), 5, "is a folder");
    check_refused(qkvlab({command, "worked_example", "-o", "/dev/full"}), 5, "No space left on device");
    check_refused(qkvlab({command, "worked_example", "-o", "/proc/o" + ending}), 5, "/proc/o" + ending);
  }
  CHECK(folder.names() == std::vector<std::string>{"folder.npz", "folder.png", "plain"});
  check_refused(run_process({"sh", "-c", "exec \"$0\" inspect worked_example > /dev/full", kProgram}), 5, "stdout");
}

TEST_CASE("a disk that is full in the middle of a file leaves the old file as it was") {
  const TempFolder folder;
  write_text(folder / "o.npz", "old");
  // A limit on the size of files refuses the write as a full disk does; the signal that goes with it is ignored.
  const std::string script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" run \"$1\" -o \"$2\"";
  const Finished finished =
      run_process({"bash", "-c", script, kProgram, kData + "sdpa/tile_edges.npz", folder / "o.npz"});
  check_refused(finished, 5, "File too large");
  CHECK(read_text(folder / "o.npz") == "old");
  CHECK(folder.names() == std::vector<std::string>{"o.npz"});
}

TEST_CASE("the input is never overwritten") {
  const TempFolder folder;
  std::filesystem::copy_file(kData + "sdpa/plain.npz", folder / "a.npz");
  const std::string before = read_text(folder / "a.npz");
  check_refused(qkvlab({"run", folder / "a.npz", "-o", folder / "../" + folder.path().filename().string() + "/a.npz"}),
                2, "is the input file");
  check_refused(qkvlab({"render", folder / "a.npz", "-o", folder / "o.png", "--layout", folder / "a.npz"}), 2,
                "is the input file");
  CHECK(read_text(folder / "a.npz") == before);
  CHECK(folder.names() == std::vector<std::string>{"a.npz"});
}
