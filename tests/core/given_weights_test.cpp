// Attention weights that come from elsewhere, without Q, K and V.
#include "core/attention/given_weights.h"

#include <cmath>

#include "core/attention/explain.h"
#include "core/attention/gradient.h"
#include "core/attention/precision.h"
#include "core/session/session_tensors.h"
#include "tests/core/action_support.h"
#include "tests/core/session_test_support.h"
#include "tests/core/weights_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

std::string problem_of(const Problem& problem) {
  const Result<Shapes> shapes = check_shapes(problem);
  REQUIRE_FALSE(shapes.ok());
  CHECK(shapes.error().code == ErrorCode::kBadInput);
  return shapes.error().message;
}

std::vector<SharedMatrix>& weights_of(Problem& problem) { return std::get<WeightsSource>(problem.source).attn; }

TensorFile npz_of(const std::vector<NamedArray>& arrays) {
  Result<Bytes> bytes = npz_bytes(arrays);
  REQUIRE(bytes.ok());
  Result<TensorFile> file = TensorFile::from_bytes(std::move(bytes).value(), "x");
  REQUIRE(file.ok());
  return std::move(file).value();
}

NamedArray array_of(const std::string& name, std::vector<std::uint64_t> shape) {
  std::uint64_t count = 1;
  for (const std::uint64_t dimension : shape) count *= dimension;
  return {name, std::move(shape), std::vector<float>(count, 0.25f)};
}

}  // namespace

TEST_CASE("given weights: the trace shows them as they are, and nothing else") {
  Session session = given_session(2, 3, 4);
  Matrix& first = weights_of(session.problem)[0].edit();
  first(0, 1) = kNaN;
  first(1, 2) = -0.5f;
  first(2, 3) = HUGE_VALF;
  const Result<Trace> made = forward(session.problem);
  REQUIRE(made.ok());
  const Trace& trace = made.value();
  CHECK(trace.shapes == Shapes{.nq = 3, .nk = 4, .heads = 2, .kv_heads = 2});
  for (const MatrixKind kind : kAllMatrixKinds) {
    const bool there = kind == MatrixKind::kAttn || kind == MatrixKind::kKeep;
    CHECK((trace.find({kind, 1}) != nullptr) == there);
    CHECK((trace.source({kind, 1}) != nullptr) == there);
  }
  CHECK(same_numbers(*trace.find({MatrixKind::kAttn, 0}), first));
  CHECK(trace.find({MatrixKind::kAttn, 1})->data() == weights_of(session.problem)[1]->data());
  CHECK(trace.find({MatrixKind::kAttn, 2}) == nullptr);
  CHECK(trace.find({MatrixKind::kKeep, 0})->minCoeff() == 1);
  CHECK(count_hidden(trace) == 0);
  CHECK(find_warnings(trace).nan_inputs == 2);
  CHECK(find_warnings(trace).nan_outputs == 0);
  CHECK(find_warnings(trace).unnormalised_rows == 1);  // row 1 of head 0; of a NaN or ∞ nothing can be said
}

TEST_CASE("given weights: how far a row may be from 1") {
  Session session = given_session(1, 3, 2);
  Matrix& weights = weights_of(session.problem)[0].edit();
  weights << 0.5f, 0.5f, 0.5f, 0.501f, 0.5f, 0.503f;
  CHECK(count_unnormalised(forward(session.problem).value()) == 1);
  CHECK(count_unnormalised(forward(worked_example().problem).value()) == 0);
}

TEST_CASE("given weights: where a weight stands in its row") {
  const float row[] = {0.1f, 0.5f, kNaN, 0.5f, -0.25f};
  CHECK(place_in_row(row, 1).rank == 1);
  CHECK(place_in_row(row, 3).rank == 1);
  CHECK(place_in_row(row, 0).rank == 3);
  CHECK(place_in_row(row, 4).rank == 4);
  CHECK(place_in_row(row, 2).rank == 0);
  CHECK(place_in_row(row, 0).keys == 4);
  CHECK(place_in_row(std::span(row).first(2), 0).sum == doctest::Approx(0.6));
}

TEST_CASE("given weights: statistics leave out rows that are no distribution") {
  Session session = given_session(1, 3, 3);
  Matrix& weights = weights_of(session.problem)[0].edit();
  weights << 0.5f, 0.5f, 0, -1, 1, 1, 0, 1, 0;
  const HeadStats stats = head_stats(forward(session.problem).value(), 0);
  CHECK(stats.entropy == doctest::Approx(std::log(2.0) / 2));
  CHECK(stats.first_token == doctest::Approx(0.25));
  CHECK(stats.previous_token == doctest::Approx(1.0));
}

TEST_CASE("given weights: an edit touches its head alone") {
  Session session = given_session(3, 4, 4);
  Trace before = forward(session.problem).value();
  weights_of(session.problem)[1].edit()(2, 0) = 7;
  UpdateReport report;
  const Trace trace = update(std::move(before), session.problem, {}, &report).value();
  CHECK_FALSE(report.full);
  CHECK(report.same == std::vector<bool>{true, false, true});
  CHECK((*trace.find({MatrixKind::kAttn, 1}))(2, 0) == 7);
  CHECK(count_unnormalised(trace) == 1);
  const Trace other = update(forward(worked_example().problem).value(), session.problem, {}, &report).value();
  CHECK(report.full);
  CHECK(other.heads.size() == 3);
  CHECK(update(trace, worked_example().problem).value().find({MatrixKind::kHeadsOut, 0}) != nullptr);
}

TEST_CASE("given weights: what acts before them is refused by its name") {
  const Problem given = given_session(2, 3, 3).problem;
  const auto with = [&](auto set) {
    Problem problem = given;
    set(problem);
    return problem_of(problem);
  };
  CHECK(contains(with([](Problem& p) { p.options.causal = true; }), "remove causal"));
  CHECK(contains(with([](Problem& p) { p.options.rope = Rope{}; }), "remove rope"));
  CHECK(contains(with([](Problem& p) { p.options.scale = 1.0f; }), "remove scale"));
  CHECK(contains(with([](Problem& p) { p.options.softcap = 1.0f; }), "remove softcap"));
  CHECK(contains(with([](Problem& p) { p.options.alibi = true; }), "remove alibi"));
  CHECK(contains(with([](Problem& p) { p.options.bias = SharedMatrix(Matrix::Zero(3, 3)); }), "remove bias"));
  CHECK(contains(with([](Problem& p) { p.options.window = 2; }), "remove window"));
  CHECK(contains(with([](Problem& p) { p.options.key_valid = {1, 1, 0}; }), "remove key_valid"));
  CHECK(contains(with([](Problem& p) { p.options.sink = {0, 0}; }), "remove sink"));
  CHECK(contains(with([](Problem& p) { p.wo = SharedMatrix(Matrix::Zero(3, 3)); }), "remove wo"));
  CHECK(contains(with([](Problem& p) { p.bo = SharedMatrix(Matrix::Zero(1, 3)); }), "remove bo"));
  CHECK(contains(with([](Problem& p) { weights_of(p)[1] = Matrix(Matrix::Zero(3, 2)); }), "attn[1] is 3×2"));
  CHECK(contains(with([](Problem& p) { weights_of(p).clear(); }), "attn has 0 heads"));
  Problem aligned = given;
  aligned.options.align = CausalAlign::kTopLeft;
  CHECK(check_shapes(aligned).ok());
}

TEST_CASE("given weights: gradients and number formats say what they need") {
  const Problem given = given_session(1, 3, 3).problem;
  const std::string words = "need q, k and v, but only attention weights are given";
  CHECK(contains(gradient(given).error().message, words));
  CHECK(gradient(given).error().code == ErrorCode::kUnsupported);
  CHECK(contains(precision(NumberFormat::kFloat16, given).error().message, words));
  CHECK(contains(steps_in_float64(given).error().message, words));
}

TEST_CASE("given weights: a cell is explained by its value alone") {
  const Trace trace = forward(given_session(2, 3, 4).problem).value();
  const auto cell = explain(trace, {MatrixKind::kAttn, 1}, 2, 3);
  REQUIRE(cell);
  CHECK(cell->stored == given_matrix(1, 3, 4)(2, 3));
  CHECK(cell->softmax.empty());
  CHECK_FALSE(cell->dead_row);
  CHECK(explain_softmax_row(trace, 0, 0).empty());
  CHECK_FALSE(explain(trace, {MatrixKind::kScores, 0}, 0, 0));
  CHECK_FALSE(explain(trace, {MatrixKind::kOut, 0}, 0, 0));
}

TEST_CASE("given weights: a session file keeps every bit") {
  Session session = given_session(2, 3, 4);
  Matrix& first = weights_of(session.problem)[0].edit();
  first(0, 0) = kNaN;
  first(0, 1) = -HUGE_VALF;
  first(0, 2) = -0.0f;
  first(1, 0) = 1e-45f;
  const std::string json = session_to_json(session);
  CHECK(contains(json, "\"kind\": \"weights\""));
  const Result<Session> read = parse_session(json, {});
  REQUIRE_MESSAGE(read.ok(), read.error().message);
  check_same(read.value(), session);
  CHECK(is_weights_only(read.value().problem.source));
}

TEST_CASE("given weights: session files that do not agree") {
  const auto with = [](const std::string& tokens, const std::string& attn, const std::string& more = "") {
    return "{\"qkvlab\": 1, " + tokens + "\"source\": {\"kind\": \"weights\", \"attn\": " + attn + more + "}}";
  };
  CHECK(parse_session(with("", "[[[1, 0], [0.5, 0.5]]]"), {}).value().tokens == Tokens{"0", "1"});
  CHECK(parse_session(with("", "[[[1, 0, 0], [0, 1, 0]]]"), {}).value().key_tokens == Tokens{"0", "1", "2"});
  const auto bad = [](const std::string& json, const std::string& words) {
    check_error(json, ErrorCode::kBadInput, words);
  };
  bad(with("\"tokens\": [\"a\"], ", "[[[1, 0], [0, 1]]]"), "tokens has 1 entries but attn has 2 rows");
  bad(with("\"tokens\": [\"a\", \"b\"], ", "[[[1, 0, 0], [0, 1, 0]]]"), "tokens has 2 entries but attn has 3 columns");
  bad(with("\"tokens\": [\"a\"], \"key_tokens\": [\"x\"], ", "[[[1, 0]]]"),
      "key_tokens has 1 entries but attn has 2 columns");
  bad(with("", "[[[1, 0], [1]]]"), "attn");
  bad(with("", "[[1, 0], [0, 1]]"), "attn");
  bad(with("", "[[[1]]]", ", \"q\": [[[1]]]"), "unknown key \"q\" in source");
}

TEST_CASE("given weights: tensors") {
  const Result<Session> heads = session_from_arrays(npz_of({array_of("attn", {3, 2, 4}), array_of("ids", {9})}), "t");
  REQUIRE_MESSAGE(heads.ok(), heads.error().message);
  CHECK(std::get<WeightsSource>(heads.value().problem.source).attn.size() == 3);
  CHECK(heads.value().tokens == Tokens{"0", "1"});
  CHECK(heads.value().keys().size() == 4);
  const Result<Session> one = session_from_arrays(npz_of({array_of("attn", {4, 4})}), "t");
  REQUIRE(one.ok());
  CHECK(head_count(one.value().problem.source) == 1);
  CHECK_FALSE(one.value().key_tokens);
  // Beside inputs that are not complete, attn is a result and not what the file is about.
  const Result<Session> half = session_from_arrays(npz_of({array_of("attn", {4, 4}), array_of("q", {4, 2})}), "t");
  REQUIRE_FALSE(half.ok());
  CHECK(contains(half.error().message, "k and v are missing"));
  const auto arrays = arrays_of(forward(heads.value().problem).value());
  REQUIRE(arrays.size() == 2);
  CHECK(arrays[0].name == "keep");
  CHECK(arrays[1].name == "attn");
  CHECK(arrays[1].shape == std::vector<std::uint64_t>{3, 2, 4});
}

TEST_CASE("given weights: cells are edited like any input") {
  const Session session = given_session(2, 3, 3);
  const Session edited = after(session, SetCell{{MatrixKind::kAttn, 1}, 2, 0, 0.75f});
  CHECK(numbers(edited, MatrixKind::kAttn, 1)(2, 0) == 0.75f);
  CHECK(same_numbers(numbers(edited, MatrixKind::kAttn, 0), numbers(session, MatrixKind::kAttn, 0)));
  const Session filled = after(session, FillBlock{{MatrixKind::kAttn, 0}, {0, 0, 3, 3}, Fill::kIdentity, 0, 1});
  CHECK(numbers(filled, MatrixKind::kAttn) == Matrix(Matrix::Identity(3, 3)));
  CHECK(contains(refusal(session, SetCell{{MatrixKind::kAttn, 2}, 0, 0, 1}), "there is no head 3 of A"));
  CHECK(contains(refusal(session, SetCell{{MatrixKind::kQ, 0}, 0, 0, 1}), "this session holds weights alone"));
}

TEST_CASE("given weights: tokens label rows and columns") {
  const Session session = given_session(2, 4, 4);
  const Matrix& weights = numbers(session, MatrixKind::kAttn, 1);
  const Session named = after(session, SetTokens{Side::kQueries, {"d", "x", "y", "a"}});
  CHECK(same_numbers(numbers(named, MatrixKind::kAttn, 1), weights));
  const Session shorter = after(session, SetTokens{Side::kQueries, {"x", "y", "d"}});
  CHECK(numbers(shorter, MatrixKind::kAttn, 1).topLeftCorner(2, 2) == weights.topLeftCorner(2, 2));
  CHECK(numbers(shorter, MatrixKind::kAttn, 1)(2, 2) == weights(3, 3));
  const Session longer = after(session, InsertToken{Side::kQueries, 1, "new"});
  const Matrix& grown = numbers(longer, MatrixKind::kAttn, 1);
  REQUIRE(grown.rows() == 5);
  CHECK(grown.row(1).isZero(0));
  CHECK(grown.col(1).isZero(0));
  CHECK(grown.bottomRightCorner(3, 3) == weights.bottomRightCorner(3, 3));
  const Session removed = after(longer, RemoveToken{Side::kQueries, 1});
  CHECK(same_numbers(numbers(removed, MatrixKind::kAttn, 1), weights));
  const Session moved = after(session, MoveToken{Side::kQueries, 0, 3});
  CHECK(numbers(moved, MatrixKind::kAttn, 1)(3, 3) == weights(0, 0));
  CHECK(numbers(moved, MatrixKind::kAttn, 1)(0, 3) == weights(1, 0));
  const Session cross = after(session, SetCrossAttention{true});
  const Session keys = after(cross, RemoveToken{Side::kKeys, 0});
  CHECK(numbers(keys, MatrixKind::kAttn, 1) == Matrix(weights.rightCols(3)));
  CHECK(numbers(after(keys, SetCrossAttention{false}), MatrixKind::kAttn, 1).rightCols(3) == weights.rightCols(3));
}

TEST_CASE("given weights: heads come and go, and what needs Q, K and V is refused") {
  const Session session = given_session(2, 3, 3);
  const Session more = after(session, SetHeads{4});
  CHECK(numbers(more, MatrixKind::kAttn, 3).isZero(0));
  CHECK(same_numbers(numbers(more, MatrixKind::kAttn, 1), numbers(session, MatrixKind::kAttn, 1)));
  CHECK(head_count(after(session, SetHeads{1}).problem.source) == 1);
  const Action refused[] = {SetKvHeads{1},
                            SetDk{2},
                            SetDv{2},
                            SetDModel{2},
                            SetSourceKind{SourceKind::kDirect},
                            SetSourceKind{SourceKind::kProjected},
                            SetOutputProjection{true},
                            SetBiases{true},
                            SetScoreBias{true}};
  for (const Action& action : refused) CHECK(contains(refusal(session, action), "holds attention weights alone"));
  AttentionOptions causal;
  causal.causal = true;
  CHECK(contains(refusal(session, SetAttention{causal}), "remove causal"));
  ViewSettings view;
  view.tab = Tab::kConcat;
  view.lens = Lens::kGradient;
  view.head = 9;
  const Session seen = after(session, SetView{view});
  CHECK(seen.view.tab == Tab::kHead);
  CHECK(seen.view.lens == Lens::kValues);
  CHECK(seen.view.head == 1);
}
