#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "action_support.h"

using namespace qkv;
using namespace qkv::test;

TEST_CASE("the worked example holds the numbers of the source text") {
  const Session session = worked_example();
  REQUIRE(check_session(session).ok());
  CHECK(session.tokens == Tokens{"貓", "追", "老鼠"});
  CHECK(session.title == "The worked example");
  CHECK(check_session(session).value() == Shapes{3, 3, 1, 1, 3, 3, 0, 0});
  CHECK(numbers(session, MatrixKind::kQ)(1, 1) == 2);
  CHECK(numbers(session, MatrixKind::kK)(0, 1) == 2);
  CHECK(numbers(session, MatrixKind::kV)(2, 1) == 2);
}

TEST_CASE("a session that contradicts itself is named") {
  Session session = worked_example();
  session.tokens.pop_back();
  CHECK(contains(check_session(session).error().message, "tokens has 2"));
  session.tokens.clear();
  CHECK_FALSE(check_session(session).ok());
  session = worked_example();
  session.key_tokens = Tokens{"a"};
  CHECK(contains(check_session(session).error().message, "key_tokens has 1"));
  session = worked_example();
  session.view.head = -1;
  CHECK_FALSE(check_session(session).ok());
  session.view.head = 5;
  CHECK(check_session(session).ok());
  session = projected_example();
  session.key_tokens = session.tokens;
  CHECK_FALSE(check_session(session).ok());
}

TEST_CASE("inputs are found by what the source has") {
  const Session direct = worked_example();
  CHECK(find_input(direct, {MatrixKind::kQ, 0}) != nullptr);
  CHECK(find_input(direct, {MatrixKind::kQ, 1}) == nullptr);
  CHECK(find_input(direct, {MatrixKind::kQ, -1}) == nullptr);
  CHECK(find_input(direct, {MatrixKind::kX, 0}) == nullptr);
  CHECK(find_input(direct, {MatrixKind::kWo, 0}) == nullptr);
  CHECK(find_input(direct, {MatrixKind::kAttn, 0}) == nullptr);
  const Session projected = projected_example();
  CHECK(find_input(projected, {MatrixKind::kQ, 0}) == nullptr);
  for (const MatrixKind kind : {MatrixKind::kX, MatrixKind::kWq, MatrixKind::kBv, MatrixKind::kWo, MatrixKind::kBo}) {
    CHECK(find_input(projected, {kind, 0}) != nullptr);
  }
}

TEST_CASE("axes carry tokens or numbers from 1") {
  const Session session = cross_example();
  CHECK(axis_labels(session, Axis::kQueries, 3) == Tokens{"貓", "追", "老鼠"});
  CHECK(axis_labels(session, Axis::kKeys, 4) == Tokens{"貓", "追", "老鼠", "跑"});
  CHECK(axis_labels(session, Axis::kKeys, 5).back() == "5");
  CHECK(axis_labels(session, Axis::kDk, 2) == Tokens{"1", "2"});
}

TEST_CASE("typed tokens keep the rows of those that stay") {
  const Session before = worked_example();
  const Session session = after(before, SetTokens{Side::kQueries, {"大", "貓", "老鼠"}});
  for (const MatrixKind kind : {MatrixKind::kQ, MatrixKind::kK, MatrixKind::kV}) {
    CHECK(numbers(session, kind).row(1) == numbers(before, kind).row(0));
    CHECK(numbers(session, kind).row(2) == numbers(before, kind).row(2));
  }
  CHECK(numbers(session, MatrixKind::kQ).row(0) == token_vector("大", "q0", 3));
  CHECK(numbers(session, MatrixKind::kK).row(0) == token_vector("大", "k0", 3));
  CHECK(numbers(session, MatrixKind::kV).row(0) == token_vector("大", "v0", 3));
}

TEST_CASE("the same new word is the same vector in every sentence") {
  const Session one = after(worked_example(), SetTokens{Side::kQueries, {"跑", "貓"}});
  const Session two = after(worked_example(), SetTokens{Side::kQueries, {"老鼠", "不", "跑", "跑"}});
  CHECK(numbers(one, MatrixKind::kK).row(0) == numbers(two, MatrixKind::kK).row(2));
  CHECK(numbers(two, MatrixKind::kK).row(2) == numbers(two, MatrixKind::kK).row(3));
  const Session projected = after(projected_example(), SetTokens{Side::kQueries, {"跑"}});
  CHECK(numbers(projected, MatrixKind::kX).row(0) == token_vector("跑", "x", 4));
}

TEST_CASE("tokens one by one") {
  const Session before = worked_example();
  const Matrix& q = numbers(before, MatrixKind::kQ);

  const Session renamed = after(before, RenameToken{Side::kQueries, 1, "看"});
  CHECK(renamed.tokens == Tokens{"貓", "看", "老鼠"});
  CHECK(qkv::test::same_matrices(renamed, before));

  const Session inserted = after(before, InsertToken{Side::kQueries, 3, "貓"});
  CHECK(inserted.tokens == Tokens{"貓", "追", "老鼠", "貓"});
  CHECK(numbers(inserted, MatrixKind::kQ).topRows(3) == q);
  CHECK(numbers(inserted, MatrixKind::kQ).row(3) == token_vector("貓", "q0", 3));

  const Session removed = after(before, RemoveToken{Side::kQueries, 0});
  CHECK(removed.tokens == Tokens{"追", "老鼠"});
  CHECK(numbers(removed, MatrixKind::kQ) == q.bottomRows(2));

  const Session down = after(before, MoveToken{Side::kQueries, 0, 2});
  CHECK(down.tokens == Tokens{"追", "老鼠", "貓"});
  CHECK(numbers(down, MatrixKind::kQ).row(2) == q.row(0));
  const Session up = after(down, MoveToken{Side::kQueries, 2, 0});
  CHECK(same_session(up, before));
}

TEST_CASE("tokens that can't be") {
  const Session session = worked_example();
  CHECK(contains(refusal(session, SetTokens{Side::kQueries, {}}), "at least one token"));
  CHECK(contains(refusal(session, SetTokens{Side::kQueries, {"a", ""}}), "token 2 is empty"));
  CHECK(contains(refusal(session, RenameToken{Side::kQueries, 3, "a"}), "1 … 3"));
  CHECK(contains(refusal(session, RenameToken{Side::kQueries, 0, ""}), "empty"));
  CHECK(contains(refusal(session, InsertToken{Side::kQueries, 4, "a"}), "1 … 4"));
  CHECK(contains(refusal(session, InsertToken{Side::kQueries, -1, "a"}), "1 … 4"));
  refusal(session, RemoveToken{Side::kQueries, 3});
  refusal(session, MoveToken{Side::kQueries, 0, 3});
  refusal(session, MoveToken{Side::kQueries, -1, 0});
  CHECK(contains(refusal(session, SetTokens{Side::kKeys, {"a"}}), "cross-attention"));
  const Session one = after(session, SetTokens{Side::kQueries, {"貓"}});
  CHECK(contains(refusal(one, RemoveToken{Side::kQueries, 0}), "at least one token"));
  CHECK(contains(refusal(one, SetTokens{Side::kQueries, Tokens(kMaxTokens + 1, "a")}), "131072"));
}

TEST_CASE("valid keys follow their tokens") {
  Session session = worked_example();
  session.problem.options.key_valid = {1, 0, 1};
  const auto valid = [&](const Action& action) { return after(session, action).problem.options.key_valid; };
  using Valid = std::vector<std::uint8_t>;
  CHECK(valid(InsertToken{Side::kQueries, 1, "a"}) == Valid{1, 1, 0, 1});
  CHECK(valid(RemoveToken{Side::kQueries, 0}) == Valid{0, 1});
  CHECK(valid(MoveToken{Side::kQueries, 1, 0}) == Valid{0, 1, 1});
  CHECK(valid(RenameToken{Side::kQueries, 1, "a"}) == Valid{1, 0, 1});
  CHECK(valid(SetTokens{Side::kQueries, {"x", "追"}}) == Valid{1, 0});
}

TEST_CASE("the bias follows its tokens, rows with queries and columns with keys") {
  Session session = worked_example();
  Matrix bias(3, 3);
  bias << 1, 2, 3, 4, 5, 6, 7, 8, 9;
  session.problem.options.bias = SharedMatrix(bias);
  const auto of = [](const Session& s) { return s.problem.options.bias->get(); };
  const auto expect = [](std::initializer_list<std::initializer_list<float>> rows) { return Matrix(rows); };
  CHECK(of(after(session, InsertToken{Side::kQueries, 1, "a"})) ==
        expect({{1, 0, 2, 3}, {0, 0, 0, 0}, {4, 0, 5, 6}, {7, 0, 8, 9}}));
  CHECK(of(after(session, RemoveToken{Side::kQueries, 0})) == expect({{5, 6}, {8, 9}}));
  CHECK(of(after(session, MoveToken{Side::kQueries, 2, 0})) == expect({{9, 7, 8}, {3, 1, 2}, {6, 4, 5}}));
  CHECK(of(after(session, SetTokens{Side::kQueries, {"x", "追"}})) == expect({{0, 0}, {0, 5}}));
  CHECK(after(session, RenameToken{Side::kQueries, 1, "a"})
            .problem.options.bias->same_storage(*session.problem.options.bias));

  const Session cross = after(session, SetCrossAttention{true});
  CHECK(of(cross) == bias);
  const Session fewer = after(cross, RemoveToken{Side::kKeys, 1});
  CHECK(of(fewer) == expect({{1, 3}, {4, 6}, {7, 9}}));
  CHECK(of(after(cross, RemoveToken{Side::kQueries, 1})) == expect({{1, 2, 3}, {7, 8, 9}}));
  CHECK(of(after(fewer, SetCrossAttention{false})) == expect({{1, 0, 3}, {4, 0, 6}, {7, 0, 9}}));

  // As many tokens as are allowed would need a bias of 64 GiB.
  CHECK(contains(refusal(session, SetTokens{Side::kQueries, Tokens(kMaxTokens, "a")}), "1 GiB"));
}

TEST_CASE("a score bias is turned on as zeros and edited like any other matrix") {
  const MatrixId b = {MatrixKind::kBias, 0};
  for (const Session& start : {worked_example(), projected_example()}) {
    CHECK(find_input(start, b) == nullptr);
    CHECK(contains(refusal(start, SetCell{b, 0, 0, 1}), "there is no B: turn the score bias on first"));
    CHECK(contains(refusal(start, SetBlock{b, 0, 0, Matrix::Ones(1, 1)}), "turn the score bias on first"));
    const Session on = after(start, SetScoreBias{true});
    CHECK(numbers(on, MatrixKind::kBias) == Matrix::Zero(3, 3));
    // Zeros change no number.
    CHECK(forward(on.problem).value().concat == forward(start.problem).value().concat);

    Session edited = after(on, SetCell{b, 1, 2, -0.5f});
    CHECK(numbers(edited, MatrixKind::kBias)(1, 2) == -0.5f);
    edited = after(edited, SetBlock{b, 0, 0, Matrix(Matrix::Constant(2, 1, 4))});
    edited = after(edited, FillBlock{b, {2, 0, 1, 3}, Fill::kValue, -7});
    CHECK(numbers(edited, MatrixKind::kBias) == Matrix{{4, 0, 0}, {4, 0, -0.5f}, {-7, -7, -7}});
    CHECK(numbers(on, MatrixKind::kBias).isZero(0));
    CHECK(same_session(after(edited, SetScoreBias{true}), edited));
    CHECK(same_session(after(edited, SetScoreBias{false}), start));
    CHECK(contains(refusal(edited, SetCell{b, 3, 0, 1}), "row 4, column 1 in B (3 × 3)"));
    CHECK(contains(refusal(edited, SetBlock{b, 2, 2, Matrix::Ones(2, 1)}), "do not fit at row 3, column 3 of B"));
  }
  const Session cross = after(after(cross_example(), RemoveToken{Side::kQueries, 0}), SetScoreBias{true});
  CHECK(numbers(cross, MatrixKind::kBias).rows() == 2);
  CHECK(numbers(cross, MatrixKind::kBias).cols() == 4);
  CHECK(describe(SetScoreBias{true}) == "score bias on");
  CHECK(describe(SetCell{b, 1, 0, 5}) == "edit B[2, 1]");
  CHECK(contains(refusal(worked_example(), SetCell{{MatrixKind::kAlibi, 0}, 0, 0, 1}), "add a score bias"));
}

TEST_CASE("a score bias that would not fit in memory is refused") {
  Session session = after(worked_example(), SetDk{1});
  session = after(session, SetDv{1});
  session = after(session, SetTokens{Side::kQueries, Tokens(20000, "a")});
  CHECK(contains(refusal(session, SetScoreBias{true}), "that would make 400060000 numbers to edit: at most 268435456"));
}

TEST_CASE("cross-attention: each side has its tokens") {
  const Session session = cross_example();
  CHECK(session.tokens.size() == 3);
  CHECK(numbers(session, MatrixKind::kQ) == numbers(worked_example(), MatrixKind::kQ));
  CHECK(numbers(session, MatrixKind::kK).topRows(3) == numbers(worked_example(), MatrixKind::kK));
  CHECK(numbers(session, MatrixKind::kV).row(3) == token_vector("跑", "v0", 3));

  const Session shorter = after(session, RemoveToken{Side::kQueries, 0});
  CHECK(numbers(shorter, MatrixKind::kQ).rows() == 2);
  CHECK(numbers(shorter, MatrixKind::kK).rows() == 4);
  CHECK(after(session, RenameToken{Side::kKeys, 0, "狗"}).key_tokens->front() == "狗");
  CHECK(after(session, MoveToken{Side::kKeys, 3, 0}).key_tokens->front() == "跑");

  Session hidden = session;
  hidden.problem.options.key_valid = {1, 1, 0, 0};
  const Session off = after(hidden, SetCrossAttention{false});
  CHECK_FALSE(off.key_tokens.has_value());
  CHECK(off.problem.options.key_valid == std::vector<std::uint8_t>{1, 1, 0});
  CHECK(qkv::test::same_matrices(off, worked_example()));
  const Session off_shorter = after(shorter, SetCrossAttention{false});
  CHECK(numbers(off_shorter, MatrixKind::kK) == numbers(worked_example(), MatrixKind::kK).bottomRows(2));

  CHECK(same_session(after(session, SetCrossAttention{true}), session));
  CHECK(contains(refusal(projected_example(), SetCrossAttention{true}), "X"));
}

TEST_CASE("cells and blocks") {
  const Session before = worked_example();
  const MatrixId q{MatrixKind::kQ, 0};
  CHECK(numbers(after(before, SetCell{q, 2, 1, 7.5f}), MatrixKind::kQ)(2, 1) == 7.5f);
  CHECK(std::isnan(numbers(after(before, SetCell{q, 0, 0, kNaN}), MatrixKind::kQ)(0, 0)));
  CHECK(contains(refusal(before, SetCell{q, 3, 0, 1}), "row 4, column 1"));
  CHECK(contains(refusal(before, SetCell{q, 0, -1, 1}), "column 0"));

  Matrix values(2, 2);
  values << 1, 2, 3, kNaN;
  const Session pasted = after(before, SetBlock{q, 1, 1, values});
  CHECK(numbers(pasted, MatrixKind::kQ)(2, 1) == 3);
  CHECK(std::isnan(numbers(pasted, MatrixKind::kQ)(2, 2)));
  CHECK(numbers(pasted, MatrixKind::kQ).row(0) == numbers(before, MatrixKind::kQ).row(0));
  CHECK(contains(refusal(before, SetBlock{q, 2, 0, Matrix::Zero(6, 2)}),
                 "6 × 2 numbers do not fit at row 3, column 1 of Q (3 × 3)"));
  refusal(before, SetBlock{q, 0, 0, Matrix()});
  refusal(before, SetBlock{q, std::numeric_limits<Index>::max(), 0, values});
}

TEST_CASE("fills") {
  const Session before = worked_example();
  const MatrixId v{MatrixKind::kV, 0};
  const Session zeros = after(before, FillBlock{v, {0, 1, 3, 2}, Fill::kValue, 0});
  CHECK(numbers(zeros, MatrixKind::kV).rightCols(2).isZero(0));
  CHECK(numbers(zeros, MatrixKind::kV).col(0) == numbers(before, MatrixKind::kV).col(0));
  const Session identity = after(before, FillBlock{v, {1, 0, 2, 3}, Fill::kIdentity});
  Matrix expected = numbers(before, MatrixKind::kV);
  expected.bottomRows(2) << 1, 0, 0, 0, 1, 0;
  CHECK(numbers(identity, MatrixKind::kV) == expected);
  const Session random = after(before, FillBlock{v, {0, 0, 3, 3}, Fill::kRandom, 0, 99});
  CHECK(numbers(random, MatrixKind::kV) == random_matrix(99, 3, 3));
  refusal(before, FillBlock{v, {0, 0, 4, 1}, Fill::kValue, 1});
  refusal(before, FillBlock{v, {0, 0, 0, 0}, Fill::kValue, 1});
  refusal(before, FillBlock{v, {0, 0, -1, 2}, Fill::kValue, 1});
}

TEST_CASE("what can't be edited says why") {
  const Session direct = worked_example(), projected = projected_example();
  for (const MatrixKind kind : kAllMatrixKinds) {
    if (find_input(direct, {kind, 0}) == nullptr) CHECK_FALSE(refusal(direct, SetCell{{kind, 0}, 0, 0, 1}).empty());
    if (find_input(projected, {kind, 0}) == nullptr)
      CHECK_FALSE(refusal(projected, SetCell{{kind, 0}, 0, 0, 1}).empty());
  }
  CHECK(contains(refusal(direct, SetCell{{MatrixKind::kK, 1}, 0, 0, 1}), "no head 2"));
  CHECK(contains(refusal(projected, SetCell{{MatrixKind::kQ, 0}, 0, 0, 1}), "X"));
  CHECK(contains(refusal(direct, SetCell{{MatrixKind::kAttn, 0}, 0, 0, 1}), "computed"));
}

TEST_CASE("options, title, splitting") {
  AttentionOptions options;
  options.causal = true;
  options.key_valid = {1, 1, 0};
  CHECK(after(worked_example(), SetAttention{options}).problem.options == options);
  options.key_valid = {1};
  refusal(worked_example(), SetAttention{options});
  const AttentionOptions all = {
      .softcap = 2.0f, .alibi = true, .bias = SharedMatrix(Matrix::Ones(3, 3)), .window = 2, .sink = {1}};
  CHECK(after(worked_example(), SetAttention{all}).problem.options == all);
  CHECK(contains(refusal(worked_example(), SetAttention{{.rope = Rope{}}}), "d_k is 3: it needs an even d_k"));
  CHECK(contains(refusal(worked_example(), SetAttention{{.window = 0}}), "window is 0"));
  CHECK(contains(refusal(worked_example(), SetAttention{{.sink = {1, 2}}}), "1 head"));
  CHECK(contains(refusal(worked_example(), SetAttention{{.bias = SharedMatrix(Matrix::Ones(2, 3))}}),
                 "bias is 2×3 but there are 3 queries and 3 keys: it needs to be 3×3"));
  CHECK(after(worked_example(), SetTitle{"hello"}).title == "hello");
  CHECK(after(worked_example(), SetSplit{TokenSplit::kCjk}).split == TokenSplit::kCjk);
  Session broken = worked_example();
  broken.tokens.pop_back();
  refusal(worked_example(), ReplaceSession{broken});
  CHECK(same_session(after(worked_example(), ReplaceSession{cross_example()}), cross_example()));
}

TEST_CASE("labels") {
  CHECK(describe(SetCell{{MatrixKind::kQ, 0}, 1, 0, 5}) == "edit Q[2, 1]");
  CHECK(describe(SetTokens{}) == "tokens");
  CHECK_FALSE(makes_undo_step(SetView{}));
  CHECK(makes_undo_step(SetTitle{}));
}
