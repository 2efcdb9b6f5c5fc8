// The attention options as JSON, alone and in a session file.
#include "core/session/options_json.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "core/session/session_file.h"
#include "core/tensor_io/npz.h"
#include "tests/core/session_test_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

void check_bad_options(const std::string& json, ErrorCode code, const std::string& words) {
  const Result<AttentionOptions> options = parse_options(json);
  REQUIRE_FALSE(options.ok());
  INFO(options.error().message);
  CHECK(options.error().code == code);
  CHECK(options.error().message.find(words) != std::string::npos);
}

void check_bad(const std::string& json, const std::string& words) { check_error(json, ErrorCode::kBadInput, words); }

}  // namespace

TEST_CASE("options: JSON over what is there") {
  const AttentionOptions base = {2.f, true, CausalAlign::kTopLeft, {1, 0}};
  CHECK(parse_options("{}", base).value() == base);
  const Result<AttentionOptions> all =
      parse_options(R"({"scale": 0.5, "causal": false, "align": "bottom_right", "key_valid": [1, 0, 1]})", base);
  REQUIRE(all.ok());
  CHECK(all.value() == AttentionOptions{0.5f, false, CausalAlign::kBottomRight, {1, 0, 1}});
  CHECK_FALSE(parse_options(R"({"scale": null})", base).value().scale);
  CHECK(parse_options(R"({"key_valid": [true, false, 1]})").value().key_valid == std::vector<std::uint8_t>{1, 0, 1});
  CHECK(parse_options(R"({"key_valid": []})", base).value().key_valid.empty());
}

TEST_CASE("options: every variant over what is there, and null to take one away") {
  const Result<AttentionOptions> all = parse_options(
      R"({"rope": {"base": 500, "style": "interleaved"}, "softcap": 20, "alibi": true, "window": 4,
          "bias": [[1, "-inf"], [-0.5, 2]], "sink": [0, 1, -2, 5]})");
  REQUIRE_MESSAGE(all.ok(), all.error().message);
  Matrix bias(2, 2);
  bias << 1, -INFINITY, -0.5f, 2;
  CHECK(all.value() == AttentionOptions{.rope = Rope{500, RopeStyle::kInterleaved},
                                        .softcap = 20.0f,
                                        .alibi = true,
                                        .bias = SharedMatrix(bias),
                                        .window = 4,
                                        .sink = {0, 1, -2, 5}});
  CHECK(parse_options("{}", all.value()).value() == all.value());
  CHECK(parse_options(R"({"rope": {"style": "half"}})", all.value()).value().rope == Rope{10000, RopeStyle::kHalf});
  const Result<AttentionOptions> none = parse_options(
      R"({"rope": null, "softcap": null, "alibi": false, "window": null, "bias": null, "sink": []})", all.value());
  REQUIRE(none.ok());
  CHECK(none.value() == AttentionOptions{});
}

TEST_CASE("session file: the variants read back the same, as the keys of the options") {
  Session session = worked_example();
  std::get<DirectSource>(session.problem.source).q[0] = matrix_of(3, 4);
  std::get<DirectSource>(session.problem.source).k[0] = matrix_of(3, 4, 2);
  session.problem.options = {.rope = Rope{100.5f, RopeStyle::kInterleaved},
                             .softcap = 0.3f,
                             .alibi = true,
                             .bias = SharedMatrix(Matrix::Constant(3, 3, 0.5f)),
                             .window = 2,
                             .sink = {-0.1f}};
  session.problem.options.bias->edit()(1, 2) = -INFINITY;
  check_round_trip(session);
  const std::string json = session_to_json(session);
  const std::string attention =
      json.substr(json.find("\"attention\""), json.find("\"view\"") - json.find("\"attention\""));
  CHECK(attention == R"("attention": {
    "rope": {"base": 100.5, "style": "interleaved"},
    "softcap": 0.3,
    "alibi": true,
    "bias": [
      [0.5, 0.5, 0.5],
      [0.5, 0.5, "-inf"],
      [0.5, 0.5, 0.5]
    ],
    "causal": false,
    "align": "bottom_right",
    "window": 2,
    "sink": [-0.1]
  },
  )");
  session.problem.options.window = kMaxWindow;
  session.problem.options.rope->style = RopeStyle::kHalf;
  check_round_trip(session);
}

TEST_CASE("session file: a bias in another file") {
  const TempFolder folder;
  const Result<Bytes> npz = npz_bytes({{"b", {2, 2}, std::vector<float>{0, 1, 2, 3}}});
  REQUIRE(npz.ok());
  folder.write("x.npz", npz.value());
  const auto with = [](const std::string& name) {
    return Parts{.extra = R"("attention": {"bias": {"file": "x.npz", "name": ")" + name + "\"}}, "}.json();
  };
  const Result<Session> session = parse_session(with("b"), folder.path());
  REQUIRE_MESSAGE(session.ok(), session.error().message);
  CHECK((**session.value().problem.options.bias)(1, 0) == 2);
  check_error(with("c"), ErrorCode::kBadInput, "bias: x.npz: there is no array \"c\"", folder.path());
}

TEST_CASE("options: what is refused") {
  const auto bad = [](const std::string& json, const std::string& words) {
    check_bad_options(json, ErrorCode::kBadInput, words);
  };
  bad("{\"foo\": 1}",
      "unknown option \"foo\": the options are rope, scale, softcap, alibi, bias, causal, align, window, key_valid, "
      "sink");
  bad("{\"scale\": \"inf\"}", "option \"scale\" must be a finite number, or null");
  bad("{\"scale\": 1e39}", "scale is beyond float32's range");
  bad("{\"causal\": 1}", "option \"causal\" must be true or false, but it is a number");
  bad("{\"align\": \"left\"}", "option \"align\" must be \"bottom_right\" or \"top_left\", but it is \"left\"");
  for (const std::string value : {"2", "[0, 2]", "[\"1\"]", "[0.5]", "null", "{}"}) {
    bad("{\"key_valid\": " + value + "}", "option \"key_valid\" must be an array of 0 and 1");
  }
  bad("[]", "the options must be an object, but it is an array");
  bad("{\"causal\": tru}", "line 1, column");
  bad(R"({"rope": 1})", "option \"rope\" must be an object, but it is a number");
  bad(R"({"rope": {"base": 10000}})", "the key \"style\" is missing in rope");
  bad(R"({"rope": {"style": "gptj"}})", "rope.style must be \"half\" or \"interleaved\", but it is \"gptj\"");
  bad(R"({"rope": {"style": "half", "scaling": 2}})", "unknown key \"scaling\" in rope: the keys are base, style");
  for (const std::string base : {"1", "0", "-5", "\"inf\"", "null"}) {
    bad(R"({"rope": {"style": "half", "base": )" + base + "}}", "rope.base must be a finite number above 1");
  }
  for (const std::string cap : {"0", "-1", "\"nan\"", "true", "[1]"}) {
    bad("{\"softcap\": " + cap + "}", "option \"softcap\" must be a finite number above 0, or null for no cap");
  }
  bad(R"({"alibi": 1})", "option \"alibi\" must be true or false, but it is a number");
  for (const std::string window : {"0", "-1", "1.5", "16777217.5e1", "\"4\"", "[]"}) {
    bad("{\"window\": " + window + "}",
        "option \"window\" must be a whole number from 1 to 16777216, or null for no window");
  }
  bad(R"({"bias": [1, 2]})", "bias[0] must be a row of numbers");
  bad(R"({"bias": [[1, 2], [3]]})", "bias[1] has 1 numbers but bias[0] has 2");
  bad(R"({"bias": {"file": "x.npz", "name": "b"}})", "bias must be an array, but it is an object");
  for (const std::string sink : {"1", "null", "[\"nan\"]", "[true]", "[[1]]"}) {
    bad("{\"sink\": " + sink + "}", "option \"sink\" must be an array of numbers, one for each head");
  }
  const auto with = [](const std::string& option) {
    return Parts{.extra = "\"attention\": {" + option + "}, "}.json();
  };
  check_bad(with("\"sink\": [1, 2]"), "sink has 2 numbers but there is 1 head");
  check_bad(with("\"bias\": [[1, 2]]"), "bias is 1×2 but there are 2 queries and 2 keys: it needs to be 2×2");
  check_bad(with("\"bias\": [[1, 2], [3, 4], [5, 6]]"),
            "bias is 3×2 but there are 2 queries and 2 keys: it needs to be");
  check_bad(with("\"bias\": [[1, 2], [3]]"), "bias[1] has 1 numbers but bias[0] has 2");
  check_bad(with("\"sink\": [\"inf\"]"), "option \"sink\" must be an array of numbers, one for each head");
  check_bad(with("\"softcap\": 0"), "option \"softcap\" must be a finite number above 0, or null for no cap");
  check_bad(with("\"scale\": \"nan\""), "option \"scale\" must be a finite number, or null for 1/√d_k");
  check_bad(with("\"scale\": \"-inf\""), "option \"scale\" must be a finite number, or null for 1/√d_k");
  check_bad(with("\"rope\": {\"style\": \"half\", \"base\": 1}"), "rope.base must be a finite number above 1");
  check_bad(Parts{.extra = "\"attention\": {\"rope\": {\"style\": \"half\"}}, ",
                  .q = "[[[1, 2, 3], [4, 5, 6]]]",
                  .k = "[[[1, 2, 3], [4, 5, 6]]]"}
                .json(),
            "rope turns pairs of columns but d_k is 3: it needs an even d_k");
  check_bad(with("\"window\": 0"), "attention: option \"window\" must be a whole number from 1");
  check_bad(Parts{.extra = "\"attention\": {\"key_valid\": [1]}, "}.json(),
            "key_valid has 1 entry but there are 2 keys");
}
