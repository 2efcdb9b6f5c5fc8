// `qkvlab bench`: what it reports, not how fast it is.
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "tests/cli/support.h"

using namespace qkv::test;
using Json = nlohmann::json;

TEST_CASE("bench names the machine and times every variant and kind of work") {
  const Finished finished = qkvlab({"bench", "--quick", "--json"});
  REQUIRE(finished.exit_code == 0);
  CHECK(finished.err == "");
  const Json json = Json::parse(finished.out);
  CHECK_FALSE(json["processor"].get<std::string>().empty());
  CHECK_FALSE(json["target"].get<std::string>().empty());
  CHECK(json["threads"].get<int>() >= 1);
  const double peak = json["fma_gflops"];
  CHECK(peak > 0);
  CHECK(json["exp_gelems"].get<double>() > 0);

  std::set<std::string> variants, works;
  for (const Json& row : json["rows"]) {
    CAPTURE(row.dump());
    variants.insert(row["variant"]);
    works.insert(row["work"]);
    CHECK(row["ms"].get<double>() > 0);
    CHECK(row["n"].get<int>() > 0);
    if (row["work"] == "edit") {
      CHECK(row["of_full_pass"].get<double>() > 0);
      continue;
    }
    if (row["work"] == "edit to picture") {
      // What the frame was made of; filling its pixels is OpenGL's part of it without a graphics card.
      for (const std::string part : {"compute_ms", "layout_ms", "opengl_ms", "fill_ms"}) {
        CHECK_MESSAGE(row[part].get<double>() > 0, part);
      }
      continue;
    }
    if (!row.contains("gflops")) {
      CHECK(row["variant"].get<std::string>().ends_with("coarse picture"));
      continue;
    }
    // The same number twice: a share of the peak is operations a second over those of all threads.
    const double share = row["gflops"].get<double>() / (peak * row["threads"].get<int>());
    CHECK(row["of_fma_peak"].get<double>() == doctest::Approx(share));
    CHECK(row["limit_ms"].get<double>() > 0);
    CHECK(row["of_limit"].get<double>() == doctest::Approx(row["ms"].get<double>() / row["limit_ms"].get<double>()));
  }
  CHECK(works == std::set<std::string>{"all steps", "edit", "edit to picture", "layer", "output alone", "streamed"});
  for (const std::string variant :
       {"plain", "causal", "rope", "softcap 20", "alibi", "window 128", "causal, window 128", "sink",
        "2 key/value heads", "one row of Q", "one row of K", "one row of V", "cell of Q, one head",
        "cell of B, one head", "cell of X, one head", "token in and out, one head"}) {
    CHECK_MESSAGE(variants.contains(variant), variant);
  }
}

TEST_CASE("bench prints a table, and refuses what is no number of threads") {
  const Finished finished = qkvlab({"bench", "--quick", "--threads", "1"});
  CHECK(finished.exit_code == 0);
  CHECK(finished.out.find(", 1 thread, SIMD target ") != std::string::npos);
  CHECK(finished.out.find("GFLOP/s") != std::string::npos);
  CHECK(std::regex_search(finished.out, std::regex("\noutput alone +causal ")));
  check_refused(qkvlab({"bench", "--threads", "0"}), 2, "--threads: \"0\" is not a whole number from 1 to 1024");
}
