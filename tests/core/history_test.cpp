#include "core/session/history.h"

#include <doctest/doctest.h>

#include "session_equal.h"

using namespace qkv;
using qkv::test::same_session;

namespace {

SetCell q_cell(Index row, Index col, float value) { return {{MatrixKind::kQ, 0}, row, col, value}; }

float q_at(const History& history, Index row, Index col) {
  return find_input(history.current(), {MatrixKind::kQ, 0})->get()(row, col);
}

constexpr std::size_t kMatrixBytes = 9 * sizeof(float);  // of the worked example

}  // namespace

TEST_CASE("undo and redo") {
  History history(worked_example());
  CHECK_FALSE(history.can_undo());
  CHECK_FALSE(history.can_redo());
  history.undo();
  history.redo();
  CHECK(same_session(history.current(), worked_example()));

  REQUIRE(history.perform(q_cell(0, 0, 5)).ok());
  REQUIRE(history.perform(SetTokens{Side::kQueries, {"貓", "睡著了"}}).ok());
  const Session last = history.current();
  CHECK(history.steps() == 2);
  CHECK(history.undo_label() == "tokens");
  history.undo();
  CHECK(history.undo_label() == "edit Q[1, 1]");
  CHECK(history.redo_label() == "tokens");
  CHECK(history.current().tokens.size() == 3);
  CHECK(q_at(history, 0, 0) == 5);
  history.undo();
  CHECK(same_session(history.current(), worked_example()));
  CHECK_FALSE(history.can_undo());
  history.redo();
  history.redo();
  CHECK(same_session(history.current(), last));
  CHECK_FALSE(history.can_redo());
}

TEST_CASE("a new step clears what could be redone, a failed one does not") {
  History history(worked_example());
  REQUIRE(history.perform(q_cell(0, 0, 5)).ok());
  history.undo();
  const Status failed = history.perform(q_cell(7, 0, 5));
  REQUIRE_FALSE(failed.ok());
  CHECK(history.can_redo());
  CHECK(same_session(history.current(), worked_example()));
  CHECK_FALSE(history.is_modified());
  REQUIRE(history.perform(q_cell(1, 1, 6)).ok());
  CHECK_FALSE(history.can_redo());
}

TEST_CASE("a gesture is one step") {
  History history(worked_example());
  for (int i = 1; i <= 20; ++i) REQUIRE(history.perform(q_cell(0, 0, static_cast<float>(i)), 1).ok());
  CHECK(history.steps() == 1);
  REQUIRE(history.perform(q_cell(0, 1, 1), 2).ok());
  REQUIRE(history.perform(q_cell(0, 1, 2), 0).ok());
  REQUIRE(history.perform(q_cell(0, 1, 3), 0).ok());
  CHECK(history.steps() == 4);
  for (int i = 0; i < 3; ++i) history.undo();
  CHECK(q_at(history, 0, 0) == 20);
  // The drag is over once it was undone to: the same number starts another step.
  REQUIRE(history.perform(q_cell(0, 0, 30), 1).ok());
  CHECK(history.steps() == 2);
  history.undo();
  CHECK(q_at(history, 0, 0) == 20);
  history.undo();
  CHECK(same_session(history.current(), worked_example()));
}

TEST_CASE("the view is no step and stays through undo") {
  History history(worked_example());
  REQUIRE(history.perform(SetHeads{4}).ok());
  REQUIRE(history.perform(q_cell(0, 0, 9)).ok());
  history.undo();
  ViewSettings view;
  view.head = 3;
  view.tab = Tab::kHeads;
  view.decimals = 1;
  REQUIRE(history.perform(SetView{view}).ok());
  CHECK(history.steps() == 1);
  CHECK(history.can_redo());
  history.redo();
  CHECK(history.current().view == view);
  history.undo();
  history.undo();
  CHECK(history.current().view.tab == Tab::kHeads);
  CHECK(history.current().view.decimals == 1);
  CHECK(history.current().view.head == 0);  // the one head that there is
}

TEST_CASE("modified compares with what was saved") {
  History history(worked_example());
  CHECK_FALSE(history.is_modified());
  REQUIRE(history.perform(SetView{}).ok());
  CHECK_FALSE(history.is_modified());
  REQUIRE(history.perform(q_cell(0, 0, 5)).ok());
  CHECK(history.is_modified());
  history.undo();
  CHECK_FALSE(history.is_modified());
  history.redo();
  history.mark_saved();
  CHECK_FALSE(history.is_modified());
  history.undo();
  CHECK(history.is_modified());
  history.redo();
  CHECK_FALSE(history.is_modified());
  // Another way from the same place is another state.
  history.undo();
  REQUIRE(history.perform(q_cell(0, 0, 5)).ok());
  CHECK(history.is_modified());
}

TEST_CASE("a gesture that goes on after saving is modified") {
  History history(worked_example());
  REQUIRE(history.perform(q_cell(0, 0, 5), 3).ok());
  history.mark_saved();
  REQUIRE(history.perform(q_cell(0, 0, 6), 3).ok());
  CHECK(history.steps() == 1);
  CHECK(history.is_modified());
  history.undo();
  CHECK(history.is_modified());
  history.redo();
  CHECK(history.is_modified());
}

TEST_CASE("bytes counts each matrix that only steps hold, once") {
  History history(worked_example());
  CHECK(history.bytes() == 0);
  REQUIRE(history.perform(SetTitle{"another"}).ok());
  CHECK(history.bytes() == 0);
  REQUIRE(history.perform(q_cell(0, 0, 5)).ok());
  CHECK(history.bytes() == kMatrixBytes);  // the old Q is in both steps; K and V are current
  REQUIRE(history.perform(q_cell(0, 0, 6)).ok());
  CHECK(history.bytes() == 2 * kMatrixBytes);
  history.undo();
  CHECK(history.bytes() == 2 * kMatrixBytes);
  history.undo();
  history.undo();
  CHECK(history.bytes() == 2 * kMatrixBytes);
  REQUIRE(history.perform(SetTitle{"short way"}).ok());
  CHECK(history.bytes() == 0);

  REQUIRE(history.perform(SetAttention{{.bias = SharedMatrix(Matrix::Ones(3, 3))}}).ok());
  REQUIRE(history.perform(SetTitle{"with a bias"}).ok());
  CHECK(history.bytes() == 0);
  REQUIRE(history.perform(SetAttention{{}}).ok());
  CHECK(history.bytes() == kMatrixBytes);
}

TEST_CASE("the oldest steps go first when the bytes run out") {
  History history(worked_example(), 10 * kMatrixBytes);
  for (int i = 1; i <= 50; ++i) {
    REQUIRE(history.perform(q_cell(0, 0, static_cast<float>(i))).ok());
    CHECK(history.bytes() <= 10 * kMatrixBytes);
  }
  CHECK(history.steps() == 10);
  while (history.can_undo()) {
    history.undo();
    CHECK(history.bytes() <= 10 * kMatrixBytes);
  }
  CHECK(q_at(history, 0, 0) == 40);
  while (history.can_redo()) history.redo();
  CHECK(q_at(history, 0, 0) == 50);

  History tight(worked_example(), 0);
  REQUIRE(tight.perform(q_cell(0, 0, 1)).ok());
  REQUIRE(tight.perform(q_cell(0, 0, 2)).ok());
  CHECK(tight.steps() == 1);
  tight.undo();
  CHECK(q_at(tight, 0, 0) == 1);
  CHECK(tight.is_modified());
}

TEST_CASE("another session starts over") {
  History history(worked_example());
  REQUIRE(history.perform(q_cell(0, 0, 5)).ok());
  Session other = worked_example();
  other.title = "other";
  history.reset(other);
  CHECK_FALSE(history.can_undo());
  CHECK_FALSE(history.can_redo());
  CHECK_FALSE(history.is_modified());
  CHECK(history.bytes() == 0);
  CHECK(history.current().title == "other");
  REQUIRE(history.perform(q_cell(0, 0, 5)).ok());
  CHECK(history.is_modified());
  CHECK(history.bytes() == kMatrixBytes);
}

TEST_CASE("opening in place can be undone") {
  History history(worked_example());
  Session other = worked_example();
  other.tokens[0] = "dog";
  REQUIRE(history.perform(ReplaceSession{other}).ok());
  CHECK(history.current().tokens[0] == "dog");
  history.undo();
  CHECK(same_session(history.current(), worked_example()));
}

TEST_CASE("ten thousand small steps stay quick") {
  History history(worked_example());
  for (int i = 1; i <= 10000; ++i) REQUIRE(history.perform(q_cell(i % 3, 0, static_cast<float>(i))).ok());
  CHECK(history.steps() == 10000);
  while (history.can_undo()) history.undo();
  CHECK(same_session(history.current(), worked_example()));
}
