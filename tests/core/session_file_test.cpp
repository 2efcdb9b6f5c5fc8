#include "core/session/session_file.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "core/tensor_io/npz.h"
#include "tests/core/session_test_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

void check_bad(const std::string& json, const std::string& words) { check_error(json, ErrorCode::kBadInput, words); }
void check_bad_q(const std::string& q, const std::string& words) { check_bad(Parts{.q = q}.json(), words); }

}  // namespace

TEST_CASE("session file: what is written reads back the same, bit for bit") {
  check_round_trip(worked_example());
  check_round_trip(projected_session());
  Session cross = worked_example();
  cross.key_tokens = std::vector<std::string>{"x", "y"};
  auto& source = std::get<DirectSource>(cross.problem.source);
  source.k[0] = matrix_of(2, 3);
  source.v[0] = matrix_of(2, 5);
  check_round_trip(cross);
  for (const Tab tab : {Tab::kHead, Tab::kHeads, Tab::kConcat, Tab::kProjection}) {
    cross.view.tab = tab;
    check_round_trip(cross);
  }
}

TEST_CASE("session file: every kind of number survives") {
  Session session = worked_example();
  Matrix& q = std::get<DirectSource>(session.problem.source).q[0].edit();
  using Limits = std::numeric_limits<float>;
  q << -0.0f, Limits::denorm_min(), -Limits::denorm_min(), Limits::min(), Limits::max(), Limits::lowest(), 0.1f, 1e30f,
      16777216.f;
  check_round_trip(session);
  q << INFINITY, -INFINITY, 1.17549421e-38f, 1.f / 3, 2.f / 3, 123456.789f, 9.999999e-5f, 1e10f, 3.4e-39f;
  check_round_trip(session);

  q(1, 1) = Limits::quiet_NaN();
  const Result<Session> back = parse_session(session_to_json(session), {});
  REQUIRE(back.ok());
  CHECK(std::isnan(std::get<DirectSource>(back.value().problem.source).q[0]->coeff(1, 1)));
}

TEST_CASE("session file: a number is rounded once, from its text to float32") {
  // Just above the middle of 1 and the next float32, by less than float64 sees: through float64 it would become 1.
  const Result<Session> session =
      parse_session(Parts{.q = "[[[1.00000005960464477539062500001, 1e-46], [-1e-400, 3]]]"}.json(), {});
  REQUIRE_MESSAGE(session.ok(), session.error().message);
  const SharedMatrix& q = std::get<DirectSource>(session.value().problem.source).q[0];
  CHECK(q->coeff(0, 0) == std::nextafter(1.f, 2.f));
  CHECK(q->coeff(0, 1) == 0);
  CHECK(q->coeff(1, 0) == 0);
}

TEST_CASE("session file: the text itself") {
  Session session = worked_example();
  session.title = "t";
  session.note.clear();
  session.problem.wo = matrix_of(3, 2);
  CHECK(session_to_json(session) == R"({
  "qkvlab": 1,
  "title": "t",
  "split": "white_space",
  "tokens": ["貓", "追", "老鼠"],
  "source": {
    "kind": "qkv",
    "q": [
      [
        [1, 0, 1],
        [1, 2, 1],
        [1, 1, 1]
      ]
    ],
    "k": [
      [
        [0, 2, 1],
        [1, 0, 2],
        [2, 0, 1]
      ]
    ],
    "v": [
      [
        [1, 0, 1],
        [2, 1, 0],
        [0, 2, 1]
      ]
    ]
  },
  "wo": [
    [0, 0.1],
    [0.2, 0.3],
    [0.4, 0.5]
  ],
  "attention": {
    "causal": false,
    "align": "bottom_right"
  },
  "view": {
    "tab": "head",
    "head": 0,
    "weights_map": "viridis",
    "signed_map": "blue-orange",
    "weights_range": "unit",
    "signed_range": "symmetric",
    "decimals": 3
  }
}
)");
}

TEST_CASE("session file: what may be left out") {
  const Result<Session> session = parse_session(Parts{}.json(), {});
  REQUIRE_MESSAGE(session.ok(), session.error().message);
  CHECK(session.value().tokens == std::vector<std::string>{"0", "1"});
  CHECK_FALSE(session.value().key_tokens);
  CHECK(session.value().view == ViewSettings());
  CHECK(session.value().problem.options == AttentionOptions());

  const Result<Session> cross = parse_session(Parts{.q = "[[[1, 2]]]"}.json(), {});
  REQUIRE_MESSAGE(cross.ok(), cross.error().message);
  CHECK(cross.value().tokens == std::vector<std::string>{"0"});
  CHECK(cross.value().key_tokens == std::vector<std::string>{"0", "1"});

  const Result<Session> projected = parse_session(
      R"({"qkvlab": 1, "source": {"kind": "projected", "heads": 2, "x": [[1, 2]], "wq": [[1, 2], [3, 4]],
          "wk": [[1, 2], [3, 4]], "wv": [[1, 2], [3, 4]]}})",
      {});
  REQUIRE_MESSAGE(projected.ok(), projected.error().message);
  CHECK(std::get<ProjectedSource>(projected.value().problem.source).kv_heads == 2);
}

TEST_CASE("session file: syntax errors carry line and column") {
  check_bad("", "line 1, column 1: not valid JSON");
  check_bad("{\"qkvlab\": 1,\n  \"貓\": x}", "line 2, column 8: not valid JSON: syntax error while parsing value");
  check_bad("{\"qkvlab\": 1,,}", "line 1, column 14: not valid JSON");
  check_bad(Parts{}.json() + "x", "not valid JSON");
  check_bad("{\"a\": \"\xff\"}", "ill-formed UTF-8");
  check_bad("{\"a\": \"\\ud800\"}", "surrogate");
  check_bad("{'a': 1}", "expected string literal");
  const Result<Session> session = parse_session("{\"a\": x}", {});
  REQUIRE_FALSE(session.ok());
  CHECK(session.error().offset == 6);
  CHECK(parse_session("\xef\xbb\xbf" + Parts{}.json(), {}).ok());
}

TEST_CASE("session file: every length short of the whole is an error") {
  const std::string whole = session_to_json(projected_session());
  for (std::size_t length = 0; length + 1 < whole.size(); ++length) {
    const Result<Session> session = parse_session(std::string_view(whole).substr(0, length), {});
    REQUIRE_FALSE(session.ok());
    CHECK(session.error().code == ErrorCode::kBadInput);
  }
}

TEST_CASE("session file: limits of the document") {
  check_bad(std::string(100000, '['), "nested more than 64 deep");
  std::string objects;
  for (int i = 0; i < 70; ++i) objects += "{\"a\":";
  check_bad(objects, "nested more than 64 deep");
  std::string many = "{";
  for (int i = 0; i < 70; ++i) many += "\"k" + std::to_string(i) + "\": 1,";
  check_bad(many, "more than 64 keys in one object");
  check_bad("{\"qkvlab\": 1, \"qkvlab\": 1}", "the key \"qkvlab\" comes twice");
  check_bad(Parts{.source_extra = "\"q\": 1, "}.json(), "the key \"q\" comes twice in source");
  check_bad_q("[[[1, 2], [3, 1e39]]]", "source.q[0][1][1] is beyond float32's range");
  check_bad_q("[[[1, 2], [3, -1e400]]]", "source.q[0][1][1] is beyond float32's range");
  check_bad("{\"" + std::string(100000, 'x') + "\": 1e39}", "x…");
  check_bad("[1]", "the session must be an object, but it is an array");
}

TEST_CASE("session file: the version") {
  check_bad("{}", "the key \"qkvlab\" is missing: a session file starts with");
  check_error("{\"qkvlab\": 2, \"anything\": 1}", ErrorCode::kUnsupported, "written by a newer version: qkvlab 2");
  for (const std::string version : {"0", "-1", "1.5", "\"1\"", "null", "true", "[1]"}) {
    check_bad(Parts{.version = version}.json(), "qkvlab must be a whole number from 1 to 1");
  }
}

TEST_CASE("session file: unknown and missing keys are named") {
  check_bad(Parts{.extra = "\"colour\": 1, "}.json(),
            "unknown key \"colour\": the keys are qkvlab, title, note, split, tokens, key_tokens, source, wo, bo, "
            "attention, mapping, view");
  check_bad(Parts{.extra = "\"a\\nb\": 1, "}.json(), "unknown key \"a b\"");
  check_bad(Parts{.source_extra = "\"x\": 1, "}.json(), "unknown key \"x\" in source: the keys are kind, q, k, v");
  check_bad(Parts{.extra = "\"view\": {\"zoom\": 1}, "}.json(), "unknown key \"zoom\" in view: the keys are tab, head");
  check_bad("{\"qkvlab\": 1}", "the key \"source\" is missing");
  check_bad("{\"qkvlab\": 1, \"source\": {}}", "the key \"kind\" is missing in source");
  check_bad("{\"qkvlab\": 1, \"source\": {\"kind\": \"qkv\", \"q\": [[[1]]], \"v\": [[[1]]]}}",
            "the key \"k\" is missing in source");
  check_bad("{\"qkvlab\": 1, \"source\": {\"kind\": \"projected\", \"x\": [[1]], \"wq\": [[1]], \"wk\": [[1]]}}",
            "the key \"wv\" is missing in source");
  check_bad(
      "{\"qkvlab\": 1, \"source\": {\"kind\": \"projected\", \"x\": [[1]], \"wq\": [[1]], \"wk\": [[1]], "
      "\"wv\": [[1]]}}",
      "the key \"heads\" is missing in source");
  check_bad("{\"qkvlab\": 1, \"source\": {\"kind\": \"qkx\"}}",
            "source.kind must be \"qkv\", \"projected\" or \"weights\", but it is \"qkx\"");
  check_bad("{\"qkvlab\": 1, \"source\": {\"kind\": \"weights\"}}", "the key \"attn\" is missing in source");
}

TEST_CASE("session file: types of values") {
  const auto with = [](const std::string& member) { return Parts{.extra = member + ", "}.json(); };
  check_bad(with("\"title\": 1"), "title must be text, but it is a number");
  check_bad(with("\"note\": []"), "note must be text, but it is an array");
  check_bad(with("\"tokens\": \"a b\""), "tokens must be an array of texts, but it is \"a b\"");
  check_bad(with("\"tokens\": [\"a\", 2]"), "tokens[1] must be text, but it is a number");
  check_bad(with("\"tokens\": [1, 2]"), "tokens[0] must be text, but it is a number");
  check_bad(with("\"tokens\": [\"a\"]"), "tokens has 1 entries but q has 2 rows");
  check_bad(with("\"tokens\": []"), "a session needs at least one token");
  check_bad(with("\"split\": \"words\""), "split must be \"white_space\", \"cjk\" or \"characters\"");
  check_bad(with("\"bo\": [[1, 2]]"), "bo[0] must be a number");
  check_bad(with("\"wo\": [1, 2]"), "wo[0] must be a row of numbers");
  check_bad(with("\"wo\": [[1, 2]]"), "wo has 1 row");
  check_bad("{\"qkvlab\": 1, \"source\": 5}", "source must be an object, but it is a number");
  check_bad(
      "{\"qkvlab\": 1, \"source\": {\"kind\": \"projected\", \"x\": [[1]], \"wq\": [[1]], \"wk\": [[1]], "
      "\"wv\": [[1]], \"heads\": 1.5}}",
      "source.heads must be a whole number from 1 to 256");
  check_bad(
      "{\"qkvlab\": 1, \"source\": {\"kind\": \"projected\", \"x\": [[1]], \"wq\": [[1]], \"wk\": [[1]], "
      "\"wv\": [[1]], \"heads\": 1, \"kv_heads\": 0}}",
      "source.kv_heads must be a whole number from 1 to 256");
  CHECK(parse_session(with("\"tokens\": [\"nan\", \"inf\"]"), {}).ok());  // words here, not numbers
}

TEST_CASE("session file: tensors that are not rectangular name the place") {
  check_bad_q("[[[1, 2], [3, 4, 5]]]", "q[0][1] has 3 numbers but q[0][0] has 2");
  check_bad_q("[[[1, 2, 3], [4, 5, 6]], [[1, 2, 3], [1, 2, 3]], [[1, 2, 3], [1, 2]]]",
              "q[2][1] has 2 numbers but q[2][0] has 3");
  check_bad_q("[[[1, 2], [3, 4]], [[1, 2]]]", "q[1] has 1 rows but q[0] has 2");
  check_bad_q("[[[1, 2], [3, 4]], [[1], [2]]]", "q[1][0] has 1 numbers but q[0][0] has 2");
  check_bad_q("[]", "q is empty");
  check_bad_q("[[]]", "q[0] is empty");
  check_bad_q("[[[1], []]]", "q[0][1] is empty");
  check_bad_q("5", "q must be an array, but it is a number");
  check_bad_q("[1]", "q[0] must be the rows of a head, but it is a number: q is [heads][tokens][numbers]");
  check_bad_q("[[1, 2]]", "q[0][0] must be a row of numbers, but it is a number");
  check_bad_q("[[[1, 2], 3]]", "q[0][1] must be an array, but it is a number");
  check_bad_q("[[[1, 2], [3, \"four\"]]]",
              "q[0][1][1] must be a number, \"nan\", \"inf\" or \"-inf\", but it is \"four\"");
  check_bad_q("[[[1, 2], [3, null]]]", "q[0][1][1] must be a number");
  check_bad_q("[[[1, 2], [3, [4]]]]", "q[0][1][1] must be a number");
  check_bad_q("[[[1, 2, 3], [1, 2, 3]]]", "k has 2 columns but q has 3");
}

TEST_CASE("session file: view settings") {
  const auto with = [](const std::string& member) { return Parts{.extra = "\"view\": {" + member + "}, "}.json(); };
  check_bad(with("\"tab\": \"all\""),
            "view.tab must be \"head\", \"heads\", \"concat\" or \"projection\", but it is \"all\"");
  for (const Lens lens : kAllLenses) {
    Session session = worked_example();
    session.view.lens = lens;
    const Result<Session> again = parse_session(session_to_json(session), {});
    REQUIRE(again.ok());
    CHECK(again.value().view == session.view);
  }
  check_bad(with("\"lens\": \"half\""),
            "view.lens must be \"values\", \"gradient\", \"float32\", \"bfloat16\" or \"float16\", but it is \"half\"");
  check_bad(with("\"head\": -1"), "view.head must be a whole number from 0 to 255");
  check_bad(with("\"decimals\": 7"), "view.decimals must be a whole number from 0 to 6");
  check_bad(with("\"weights_map\": \"\""), "view.weights_map is empty");
  check_bad(with("\"signed_map\": 1"), "view.signed_map must be text");
  check_bad(with("\"weights_range\": \"all\""),
            "view.weights_range must be \"unit\", \"auto\", \"symmetric\" or \"log\"");
  check_bad(with("\"weights_range\": [1]"), "\"symmetric\", \"log\" or [low, high]");
  check_bad(with("\"signed_range\": \"log\""), "view.signed_range must be \"unit\", \"auto\" or \"symmetric\"");
  for (const std::string range : {"[1]", "[1, 1]", "[2, 1]", "[0, 1, 2]", "[0, \"inf\"]", "5", "null"}) {
    check_bad(with("\"signed_range\": " + range),
              "view.signed_range must be \"unit\", \"auto\", \"symmetric\" or [low, high]");
  }
  const Result<Session> log = parse_session(with("\"weights_range\": \"log\""), {});
  REQUIRE(log.ok());
  CHECK(log.value().view.weights_range.mode == RangeMode::kLog);
  const Result<Session> again = parse_session(session_to_json(log.value()), {});
  REQUIRE(again.ok());
  CHECK(again.value().view == log.value().view);
  const Result<Session> session = parse_session(with("\"weights_map\": \"of another version\""), {});
  REQUIRE(session.ok());
  CHECK(session.value().view.weights_map == "of another version");
}

TEST_CASE("session file: tensors in other files") {
  const TempFolder folder;
  const std::vector<float> numbers = {0, 1, 2, 3};
  const Result<Bytes> npz =
      npz_bytes({{"q", {1, 2, 2}, numbers}, {"flat", {2, 2}, numbers}, {"row", {2}, std::vector<float>{0, 1}}});
  REQUIRE(npz.ok());
  fs::create_directories(folder.path() / "sub");
  folder.write("sub/x.npz", npz.value());
  const auto with = [](const std::string& q) { return Parts{.q = q}.json(); };
  for (const std::string name : {"q", "flat"}) {
    const Result<Session> session =
        parse_session(with("{\"file\": \"sub/x.npz\", \"name\": \"" + name + "\"}"), folder.path());
    REQUIRE_MESSAGE(session.ok(), session.error().message);
    CHECK(std::get<DirectSource>(session.value().problem.source).q[0]->coeff(1, 1) == 3);
  }
  const Result<Session> output = parse_session(
      Parts{.extra = R"("wo": {"file": "sub/x.npz", "name": "flat"}, "bo": {"file": "sub/x.npz", "name": "row"}, )"}
          .json(),
      folder.path());
  REQUIRE_MESSAGE(output.ok(), output.error().message);
  CHECK(output.value().problem.bo->get()(0, 1) == 1);

  const auto bad = [&](const std::string& q, ErrorCode code, const std::string& words) {
    check_error(with(q), code, words, folder.path());
  };
  bad(R"({"file": "sub/x.npz"})", ErrorCode::kBadInput, "the key \"name\" is missing in q");
  bad(R"({"name": "q"})", ErrorCode::kBadInput, "the key \"file\" is missing in q");
  bad(R"({"file": "sub/x.npz", "name": "q", "at": 1})", ErrorCode::kBadInput, "unknown key \"at\" in q");
  bad(R"({"file": 1, "name": "q"})", ErrorCode::kBadInput, "q.file must be text");
  bad(R"({"file": "", "name": "q"})", ErrorCode::kBadInput, "q.file must be a path relative to the session file");
  bad(R"({"file": "/etc/x.npz", "name": "q"})", ErrorCode::kBadInput, "relative to the session file, not absolute");
  bad(R"({"file": "y.npz", "name": "q"})", ErrorCode::kCannotRead, "q: y.npz: ");
  bad(R"({"file": "sub/x.npz", "name": "z"})", ErrorCode::kBadInput, "q: sub/x.npz: there is no array \"z\"");
  bad(R"({"file": "sub/x.npz", "name": "row"})", ErrorCode::kBadInput,
      "q: sub/x.npz: \"row\" has the shape (2,): it must be [heads, tokens, d] or [tokens, d]");

  // Axes in another order than this program's, or several heads on one.
  const Result<Session> turned =
      parse_session(Parts{.q = R"({"file": "sub/x.npz", "name": "flat", "layout": "DN"})",
                          .k = R"({"file": "sub/x.npz", "name": "q", "layout": "BND", "batch": 0})"}
                        .json(),
                    folder.path());
  REQUIRE_MESSAGE(turned.ok(), turned.error().message);
  CHECK(std::get<DirectSource>(turned.value().problem.source).q[0]->coeff(0, 1) == 2);
  bad(R"({"file": "sub/x.npz", "name": "q", "batch": 1})", ErrorCode::kBadInput, "the key \"layout\" is missing in q");
  bad(R"({"file": "sub/x.npz", "name": "q", "layout": "NN"})", ErrorCode::kBadInput,
      "q: sub/x.npz: the layout NN is none of q");
  bad(R"({"file": "sub/x.npz", "name": "q", "layout": "BND", "batch": 1})", ErrorCode::kBadInput,
      "q: sub/x.npz: \"q\" has the shape (1, 2, 2), but q as BND has no batch 1: there are 0 … 0");
  bad(R"json({"file": "sub/x.npz", "name": "flat", "layout": "N(HD)", "heads": 3})json", ErrorCode::kBadInput,
      "q as N(HD) needs a multiple of 3 on axis 1");
  bad(R"json({"file": "sub/x.npz", "name": "flat", "layout": "N(HD"})json", ErrorCode::kBadInput,
      "q.layout: the layout \"N(HD\" lacks a closing parenthesis");
}

TEST_CASE("session file: files on disk") {
  const TempFolder folder;
  const Session session = projected_session();
  const fs::path path = folder.path() / "a.qkv.json";
  REQUIRE(write_session(session, path).ok());
  const Result<Session> back = read_session(path);
  REQUIRE(back.ok());
  check_same(session, back.value());
  const Result<Session> any = open_any(path);
  REQUIRE(any.ok());
  check_same(session, any.value());

  const Result<Session> missing = read_session(folder.path() / "none.json");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code == ErrorCode::kCannotRead);
  CHECK(missing.error().message.find("none.json") == std::string::npos);
  CHECK(write_session(session, folder.path() / "none" / "a.json").error().code == ErrorCode::kCannotWrite);
}
