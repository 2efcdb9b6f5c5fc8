// Sessions that remember the tensors they were read from, and bfloat16 numbers in 16-bit integers, on the command line.
#include <nlohmann/json.hpp>

#include "core/session/session_file.h"
#include "core/session/tensor_origin.h"
#include "tests/cli/support.h"
#include "tests/support/bfloat16_file.h"

using namespace qkv;
using namespace qkv::test;
using Json = nlohmann::json;

namespace {

namespace fs = std::filesystem;

const std::string kFlag = "--uint16-is-bfloat16";

// A session of one sentence and a layer of the real model, in `folder`.
std::string save_model_session(const TempFolder& folder) {
  TensorSet files;
  for (const std::string name : {"sentence_0.npz", "weights_layer1.npz"}) {
    fs::copy_file(kData + "use_lite/" + name, folder / name);
    Result<TensorFile> file = TensorFile::open(folder / name);
    REQUIRE(file.ok());
    files.push_back({name, std::move(file).value(), folder / name});
  }
  const MappingProposal proposal = propose_mapping(files);
  REQUIRE(proposal.questions.empty());
  const Result<Session> session = apply_mapping(files, proposal.mapping, "sentence");
  REQUIRE(session.ok());
  const std::string path = folder / "s.qkv.json";
  REQUIRE(write_session(session.value(), path).ok());
  return path;
}

void check_says(const Finished& finished, const std::vector<std::string>& parts) {
  CHECK(finished.exit_code == 0);
  for (const std::string& part : parts) {
    const bool says_it = finished.out.find(part) != std::string::npos;
    CHECK_MESSAGE(says_it, finished.out << finished.err << " should say: " << part);
  }
}

}  // namespace

TEST_CASE("inspect tells where a session's numbers came from, and what is there now") {
  const TempFolder folder;
  const std::string path = save_model_session(folder);
  check_says(qkvlab({"inspect", path}), {"read from", "l1.x", "I(3O)", "weights_layer1.npz", "as in the file"});
  const Finished finished = qkvlab({"inspect", path, "--json"});
  REQUIRE(finished.exit_code == 0);
  const Json mapping = Json::parse(finished.out)["mapping"];
  REQUIRE(mapping.size() == 10);
  CHECK(mapping[0]["role"] == "x");
  CHECK(mapping[0]["name"] == "l1.x");
  CHECK(mapping[0]["file"] == folder / "sentence_0.npz");
  CHECK(mapping[0]["is_same"] == true);
  CHECK(mapping[1]["layout"] == "I(3O)");

  // Without its files the session is whole, and says so in a line of each tensor.
  const std::string with = folder / "with.npz", without = folder / "without.npz";
  check_silent(qkvlab({"run", path, "-o", with}));
  fs::remove(folder / "weights_layer1.npz");
  check_silent(qkvlab({"run", path, "-o", without}));
  CHECK(read_text(with) == read_text(without));
  check_says(qkvlab({"inspect", path}), {"the file is not in " + folder.path().string(), "as in the file"});
  check_says(qkvlab({"inspect", "cat_sleeps"}), {"session"});
  CHECK(qkvlab({"inspect", "cat_sleeps"}).out.find("read from") == std::string::npos);
}

TEST_CASE("16-bit integers are bfloat16 numbers where that is said, in every command that opens tensors") {
  const TempFolder folder;
  const std::vector<BitsArray> arrays = qkv_bits(4, 3);
  const std::string file = folder / "bits.safetensors", out = folder / "out.npz", figure = folder / "out.svg";
  write_text(file, safetensors_of_bits(arrays));
  check_silent(qkvlab({"run", file, kFlag, "-o", out}));
  const Result<TensorFile> result = TensorFile::open(out);
  REQUIRE(result.ok());
  CHECK(result.value().read("k").value().values == arrays[1].values);
  check_silent(qkvlab({"render", file, kFlag, "-o", figure}));
  check_says(qkvlab({"code", file, kFlag, "--as", "numpy"}), {"-0.75"});
  check_says(qkvlab({"inspect", file, kFlag}), {"bfloat16 (stored as uint16)"});
  check_says(qkvlab({"inspect", file}), {"uint16 "});
  // Without the flag it is said what they are taken for.
  const Finished integers = qkvlab({"run", file, "-o", folder / "integers.npz"});
  CHECK(integers.exit_code == 0);
  CHECK(integers.err == "qkvlab: note: " + file +
                            ": q, k and v are read as whole numbers (uint16); where they hold the bits of bfloat16, "
                            "say --uint16-is-bfloat16\n");
  const Finished json = qkvlab({"inspect", file, kFlag, "--json"});
  CHECK(Json::parse(json.out)["arrays"][0]["dtype"] == "bfloat16");
  CHECK(Json::parse(json.out)["arrays"][0]["stored"] == "uint16");

  // Both files of diff, or the one that has such arrays.
  check_says(qkvlab({"diff", file, file, kFlag}), {"equal, to the last digit: q"});
  check_says(qkvlab({"diff", out, file, kFlag}), {"equal, to the last digit: q"});
  check_says(qkvlab({"diff", file, out, kFlag}), {"equal, to the last digit: q"});
  CHECK(qkvlab({"diff", out, file}).exit_code == 1);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"run", out, kFlag, "-o", folder / "x.npz"},
                                                {"inspect", out, kFlag},
                                                {"diff", out, out, kFlag}}) {
    check_refused(qkvlab(words), 2, kFlag + ": there is no array of 16-bit unsigned integers (uint16)");
  }
  check_refused(qkvlab({"run", "cat_sleeps", kFlag, "-o", folder / "x.npz"}), 2, "is a session, which says itself");
}

TEST_CASE("code takes tensors as the other commands do") {
  check_says(qkvlab({"code", kData + "use_lite/sentence_0.npz", "--layer", "1", "--as", "latex"}), {"\\documentclass"});
}
