#include <doctest/doctest.h>

#include "action_support.h"

using namespace qkv;
using namespace qkv::test;

TEST_CASE("heads of a direct source") {
  const Session before = worked_example();
  const Session four = after(before, SetHeads{4});
  CHECK(check_session(four).value() == Shapes{3, 3, 4, 4, 3, 3, 0, 0});
  CHECK(numbers(four, MatrixKind::kQ, 0) == numbers(before, MatrixKind::kQ));
  CHECK(numbers(four, MatrixKind::kV, 3).row(1) == token_vector("追", "v3", 3));
  CHECK(same_session(after(four, SetHeads{1}), before));

  const Session grouped = after(four, SetKvHeads{2});
  CHECK(check_session(grouped).value().kv_heads == 2);
  CHECK(numbers(grouped, MatrixKind::kK, 1) == numbers(four, MatrixKind::kK, 1));
  CHECK(check_session(after(grouped, SetHeads{6})).value().kv_heads == 2);
  CHECK(check_session(after(grouped, SetHeads{3})).value().kv_heads == 1);
  CHECK(contains(refusal(four, SetKvHeads{3}), "divisor of 4"));
  CHECK(contains(refusal(four, SetKvHeads{5}), "1 … 4"));
  refusal(four, SetKvHeads{0});
  CHECK(contains(refusal(four, SetHeads{0}), "1 … 256"));
  refusal(four, SetHeads{kMaxHeads + 1});
}

TEST_CASE("the sink follows the heads, and a rope keeps d_k even") {
  Session session = after(worked_example(), SetHeads{2});
  session.problem.options.sink = {3, -1};
  CHECK(after(session, SetHeads{4}).problem.options.sink == std::vector<float>{3, -1, 0, 0});
  CHECK(after(session, SetHeads{1}).problem.options.sink == std::vector<float>{3});
  CHECK(after(after(worked_example(), SetHeads{3}), SetHeads{4}).problem.options.sink.empty());

  Session turned = after(worked_example(), SetDk{4});
  turned.problem.options.rope = Rope{};
  CHECK(after(turned, SetDk{6}).problem.options.rope == Rope{});
  CHECK(contains(refusal(turned, SetDk{5}), "rope turns pairs of columns but d_k is 5: it needs an even d_k"));
}

TEST_CASE("the shown head stays one that exists") {
  Session session = after(worked_example(), SetHeads{4});
  ViewSettings view;
  view.head = 3;
  session = after(session, SetView{view});
  CHECK(session.view.head == 3);
  CHECK(after(session, SetHeads{2}).view.head == 1);
  view.head = 17;
  CHECK(after(session, SetView{view}).view.head == 3);
  view.head = -1;
  refusal(session, SetView{view});
  view = {};
  view.decimals = 7;
  refusal(session, SetView{view});
  view = {};
  view.signed_range = {RangeMode::kCustom, 1, 1};
  refusal(session, SetView{view});
}

TEST_CASE("sizes of a direct source") {
  const Session before = worked_example();
  const Session wide = after(before, SetDk{5});
  CHECK(numbers(wide, MatrixKind::kQ).leftCols(3) == numbers(before, MatrixKind::kQ));
  CHECK(numbers(wide, MatrixKind::kQ).row(2).tail(2) == token_vector("老鼠", "q0", 5).tail(2));
  CHECK(numbers(wide, MatrixKind::kV) == numbers(before, MatrixKind::kV));
  CHECK(same_session(after(wide, SetDk{3}), before));
  const Session narrow = after(before, SetDv{1});
  CHECK(numbers(narrow, MatrixKind::kV) == numbers(before, MatrixKind::kV).leftCols(1));
  CHECK(contains(refusal(before, SetDk{0}), "d_k = 0 is out of range: 1 … 1024"));
  refusal(before, SetDv{kMaxHeadSize + 1});
  CHECK(contains(refusal(before, SetDModel{4}), "directly"));
  CHECK(contains(refusal(before, SetDOut{4}), "W^O"));
}

TEST_CASE("columns of a head keep their head and their column") {
  const Session before = projected_example();
  const Matrix &wq = numbers(before, MatrixKind::kWq), &bq = numbers(before, MatrixKind::kBq);
  const Session wide = after(before, SetDk{3});
  const Matrix& wider = numbers(wide, MatrixKind::kWq);
  REQUIRE(wider.cols() == 6);
  CHECK(wider.middleCols(0, 2) == wq.middleCols(0, 2));
  CHECK(wider.middleCols(3, 2) == wq.middleCols(2, 2));
  CHECK(wider.col(2).cwiseAbs().maxCoeff() <= 1);
  CHECK(numbers(wide, MatrixKind::kBq)(0, 3) == bq(0, 2));
  CHECK(numbers(wide, MatrixKind::kBq)(0, 2) == 0);
  CHECK(numbers(wide, MatrixKind::kWk).cols() == 3);
  CHECK(same_session(after(wide, SetDk{2}), before));

  const Session heads = after(before, SetHeads{3});  // kv_heads stays 1
  CHECK(numbers(heads, MatrixKind::kWq).leftCols(4) == wq);
  CHECK(numbers(heads, MatrixKind::kWv) == numbers(before, MatrixKind::kWv));
  CHECK(numbers(heads, MatrixKind::kWo).topRows(6) == numbers(before, MatrixKind::kWo));
  CHECK(numbers(heads, MatrixKind::kWo).rows() == 9);
  CHECK(same_session(after(heads, SetHeads{2}), before));
}

TEST_CASE("rows of the output projection stay with their head") {
  const Session before = projected_example();
  const Matrix& wo = numbers(before, MatrixKind::kWo);
  const Session narrow = after(before, SetDv{2});
  const Matrix& narrower = numbers(narrow, MatrixKind::kWo);
  REQUIRE(narrower.rows() == 4);
  CHECK(narrower.topRows(2) == wo.topRows(2));
  CHECK(narrower.bottomRows(2) == wo.middleRows(3, 2));
  const Session wide = after(before, SetDv{4});
  CHECK(numbers(wide, MatrixKind::kWo).middleRows(4, 3) == wo.bottomRows(3));
  const Session out = after(before, SetDOut{7});
  CHECK(numbers(out, MatrixKind::kWo).leftCols(5) == wo);
  CHECK(numbers(out, MatrixKind::kBo).rightCols(2).isZero(0));
  CHECK(same_session(after(out, SetDOut{5}), before));
}

TEST_CASE("d_model moves columns of X and rows of W alone") {
  const Session before = projected_example();
  const Session wide = after(before, SetDModel{6});
  CHECK(numbers(wide, MatrixKind::kX).leftCols(4) == numbers(before, MatrixKind::kX));
  CHECK(numbers(wide, MatrixKind::kX).row(0).tail(2) == token_vector("貓", "x", 6).tail(2));
  CHECK(numbers(wide, MatrixKind::kWk).topRows(4) == numbers(before, MatrixKind::kWk));
  CHECK(numbers(wide, MatrixKind::kWo) == numbers(before, MatrixKind::kWo));
  CHECK(same_session(after(wide, SetDModel{4}), before));
  CHECK(contains(refusal(before, SetDModel{kMaxModelSize + 1}), "1 … 65536"));
}

TEST_CASE("sizes whose numbers would not fit in memory are refused") {
  Session session = after(projected_example(), SetDModel{kMaxModelSize});
  session = after(session, SetHeads{4});
  CHECK(contains(refusal(session, SetDk{kMaxHeadSize}), "at most"));
}

TEST_CASE("to X and back every number stays") {
  Session direct = after(worked_example(), SetHeads{2});
  direct = after(direct, SetKvHeads{1});
  direct = after(direct, SetDv{2});
  direct = after(direct, SetOutputProjection{true});
  direct = after(direct, SetCell{{MatrixKind::kQ, 1}, 2, 2, 0.1f});
  const Session projected = after(direct, SetSourceKind{SourceKind::kProjected});
  CHECK(check_session(projected).value() == Shapes{3, 3, 2, 1, 3, 2, 2 * 3 + 3 + 2, 4});
  const Session back = after(projected, SetSourceKind{SourceKind::kDirect});
  CHECK(same_session(back, direct));
  CHECK(same_session(after(direct, SetSourceKind{SourceKind::kDirect}), direct));

  CHECK(contains(refusal(cross_example(), SetSourceKind{SourceKind::kProjected}), "cross-attention"));
  const Session with_nan = after(direct, SetCell{{MatrixKind::kV, 0}, 0, 0, kNaN});
  CHECK(contains(refusal(with_nan, SetSourceKind{SourceKind::kProjected}), "NaN"));
}

TEST_CASE("output projection and biases, on and off") {
  const Session square = after(worked_example(), SetOutputProjection{true});
  CHECK(numbers(square, MatrixKind::kWo) == Matrix::Identity(3, 3));
  CHECK(same_session(after(square, SetOutputProjection{true}), square));
  CHECK(same_session(after(square, SetOutputProjection{false}), worked_example()));
  CHECK(numbers(after(square, SetBiases{true}), MatrixKind::kBo).isZero(0));
  CHECK(contains(refusal(worked_example(), SetBiases{true}), "bias"));

  Session projected = after(projected_example(), SetOutputProjection{false});
  CHECK(find_input(projected, {MatrixKind::kBo, 0}) == nullptr);
  projected = after(projected, SetBiases{false});
  CHECK(find_input(projected, {MatrixKind::kBq, 0}) == nullptr);
  projected = after(projected, SetOutputProjection{true});
  const Matrix& wo = numbers(projected, MatrixKind::kWo);
  CHECK(wo.rows() == 6);
  CHECK(wo.cols() == 4);
  CHECK(wo.cwiseAbs().maxCoeff() <= 1);
  projected = after(projected, SetBiases{true});
  for (const MatrixKind kind : {MatrixKind::kBq, MatrixKind::kBk, MatrixKind::kBv, MatrixKind::kBo}) {
    CHECK(numbers(projected, kind).isZero(0));
  }
  // Biases that are there keep their numbers.
  CHECK(same_session(after(projected_example(), SetBiases{true}), projected_example()));
}
