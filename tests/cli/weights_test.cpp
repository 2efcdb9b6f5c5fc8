// Files of attention weights alone, on the command line.
#include <nlohmann/json.hpp>

#include "core/session/session_file.h"
#include "core/tensor_io/npz.h"
#include "tests/cli/support.h"
#include "tests/core/weights_support.h"

using namespace qkv;
using namespace qkv::test;
using Json = nlohmann::json;

namespace {

// A session of three heads [4, 7] in which one row sums to 2.
std::string written(const TempFolder& folder) {
  Session session = given_session(3, 4, 7);
  std::get<WeightsSource>(session.problem.source).attn[1].edit().row(2) *= 2;
  const std::string path = folder / "given.qkv.json";
  REQUIRE(write_session(session, path).ok());
  return path;
}

}  // namespace

TEST_CASE("weights alone: run writes attn and keep, and opens its own file") {
  const TempFolder folder;
  const std::string file = written(folder), out = folder / "out.npz";
  check_silent(qkvlab({"run", file, "-o", out}));
  const Result<Session> session = open_any(out);
  REQUIRE(session.ok());
  CHECK(std::get<WeightsSource>(session.value().problem.source).attn[2].get() == given_matrix(2, 4, 7));
  check_refused(qkvlab({"run", file, "-o", out, "--gradient", "sum-of-squares"}), 3, "need q, k and v");
  check_refused(qkvlab({"run", file, "-o", out, "--gradient", "attn:0:0:0"}), 3, "need q, k and v");
  check_refused(qkvlab({"run", file, "-o", out, "--precision", "float16"}), 3, "need q, k and v");
  check_refused(qkvlab({"run", file, "-o", out, "--causal"}), 2, "remove causal");
}

TEST_CASE("weights alone: inspect says what they are and which rows do not sum to 1") {
  const TempFolder folder;
  const std::string file = written(folder);
  const Finished table = qkvlab({"inspect", file});
  CHECK(table.exit_code == 0);
  CHECK(table.out.find("attention weights as given") != std::string::npos);
  CHECK(table.out.find("1 of 12 do not sum to 1") != std::string::npos);
  const Json json = Json::parse(qkvlab({"inspect", file, "--json"}).out);
  CHECK(json["source"] == "weights");
  CHECK(json["shapes"] == Json{{"nq", 4}, {"nk", 7}, {"heads", 3}});
  CHECK(json["rows_not_summing_to_1"] == 1);
}

TEST_CASE("weights alone: figures of a head and of all heads, and none of Concat") {
  const TempFolder folder;
  const std::string file = written(folder), png = folder / "x.png", layout = folder / "x.json";
  const auto matrices = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"render", file, "-o", png, "--layout", layout});
    check_silent(qkvlab(words));
    return Json::parse(read_text(layout))["matrices"];
  };
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--head", "1"},
                                                {"--view", "head", "--head", "1"},
                                                {"--matrix", "attn", "--head", "1"}}) {
    const Json one = matrices(words);
    REQUIRE(one.size() == 1);
    CHECK(one[0]["matrix"] == "attn");
    CHECK(one[0]["head"] == 1);
    CHECK(one[0]["rows"] == 4);
    CHECK(one[0]["cols"] == 7);
  }
  CHECK(matrices({"--view", "heads"}).size() == 3);
  check_refused(qkvlab({"render", file, "-o", png, "--view", "concat"}), 2, "no head outputs to put side by side");
  check_refused(qkvlab({"render", file, "-o", png, "--matrix", "scores"}), 2, "it has keep, attn");
  check_refused(qkvlab({"screenshot", file, "-o", png, "--lens", "gradient"}), 2, "needs q, k and v");
  check_refused(qkvlab({"screenshot", file, "-o", png, "--tab", "concat"}), 2, "needs the outputs of heads");
}
