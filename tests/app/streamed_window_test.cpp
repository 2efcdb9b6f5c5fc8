// The window and the engine with sessions whose N² matrices are not held.
#include <doctest/doctest.h>

#include "app/engine/engine.h"
#include "core/attention/explain.h"
#include "core/attention/streamed_head.h"
#include "core/attention/streamed_pass.h"
#include "core/session/tokenizer.h"
#include "tests/app/harness.h"

using namespace qkv;

namespace {

Session causal_session(int tokens, int heads) {
  Session session;
  for (int i = 0; i < tokens; ++i) session.tokens.push_back("t" + std::to_string(i));
  DirectSource source;
  for (int head = 0; head < heads; ++head) {
    const auto seed = static_cast<std::uint64_t>(head);
    source.q.emplace_back(random_matrix(1 + seed, tokens, 8));
    source.k.emplace_back(random_matrix(11 + seed, tokens, 8));
    source.v.emplace_back(random_matrix(21 + seed, tokens, 8));
  }
  session.problem.source = source;
  session.problem.options.causal = true;
  return session;
}

}  // namespace

TEST_SUITE("streamed sessions") {
  TEST_CASE("the engine hands over what can be looked at, then what is computed") {
    Engine engine({}, 0);
    engine.request(causal_session(300, 2));
    std::shared_ptr<const Computed> last, first;
    while (engine.busy()) {
      if (auto result = engine.take_result()) last = std::move(result);
      if (!first) first = last;
    }
    if (auto result = engine.take_result()) last = std::move(result);
    REQUIRE(last != nullptr);
    CHECK(!last->digest.refining);
    CHECK(!is_refining(last->trace));
    CHECK(last->trace.find({MatrixKind::kHeadsOut, 1}) != nullptr);
    CHECK(last->digest.hidden == 300 * 299 / 2);
    CHECK(last->digest.heads[1].stats.entropy > 0);
    CHECK(last->digest.heads[1].sampled);
    CHECK(last->digest.worst_row_sum < 1e-5);
    CHECK(last->digest.extents[static_cast<std::size_t>(ScaleGroup::kWeights)].high == 1);
    REQUIRE(first != nullptr);
    CHECK(first->trace.streams[0] == last->trace.streams[0]);
  }

  TEST_CASE("a newer session ends the pass of an older one") {
    Engine engine({}, 0);
    for (int tokens = 100; tokens <= 500; tokens += 100) engine.request(causal_session(tokens, 1));
    engine.wait();
    std::shared_ptr<const Computed> last;
    while (auto result = engine.take_result()) last = result;
    REQUIRE(last != nullptr);
    CHECK(last->trace.shapes.nq == 500);
    CHECK(!last->digest.refining);
  }

  TEST_CASE("a pass that was stopped goes on where it left off, also with other tokens and another head in view") {
    Engine engine({}, 0);
    Session session = causal_session(30000, 2);
    engine.request(session);
    std::shared_ptr<const Computed> shown;
    while (!engine.can_stop()) REQUIRE(engine.busy());
    engine.stop();
    engine.wait();
    CHECK(!engine.is_stopped());  // what there is was not taken yet
    while (auto result = engine.take_result()) shown = std::move(result);
    CHECK(engine.is_stopped());
    CHECK(!engine.take_error());
    CHECK(!engine.can_stop());
    REQUIRE(shown != nullptr);
    REQUIRE(is_refining(shown->trace));
    const double left_off = streamed_progress(shown->trace);
    session.tokens[0] = "renamed";
    session.view.head = 1;
    engine.request(session);
    CHECK(!engine.is_stopped());
    std::shared_ptr<const Computed> last;
    const auto take = [&] {
      auto result = engine.take_result();
      if (result == nullptr) return;
      CHECK(streamed_progress(result->trace) >= left_off);
      last = std::move(result);
    };
    while (engine.busy()) take();
    take();
    REQUIRE(last != nullptr);
    CHECK(!last->digest.refining);
    CHECK(last->session.tokens[0] == "renamed");
    CHECK(last->trace.streams == shown->trace.streams);
    CHECK(last->trace.find({MatrixKind::kHeadsOut, 1}) != nullptr);
  }

  TEST_CASE("a pass that is stopped when nearly all is done ends, or can go on") {
    Session session = causal_session(3000, 1);
    session.problem.wo = SharedMatrix(random_matrix(5, 8, 4));
    for (const double at : {0.0, 0.9, 0.97, 0.99, 0.995}) {
      CAPTURE(at);
      Engine engine({}, 0);
      engine.request(session);
      std::shared_ptr<const Computed> shown;
      while (engine.busy()) {
        if (auto result = engine.take_result()) shown = std::move(result);
        if (shown && streamed_progress(shown->trace) >= at) engine.stop();
      }
      while (auto result = engine.take_result()) shown = std::move(result);
      REQUIRE(shown != nullptr);
      const bool is_whole = !shown->digest.refining && shown->trace.find({MatrixKind::kOut, 0}) != nullptr;
      CHECK(is_whole != (engine.is_stopped() && is_refining(shown->trace)));
    }
  }

  TEST_CASE("a stopped session is edited: what was stopped is given up") {
    Engine engine({}, 0);
    engine.request(causal_session(30000, 1));
    while (!engine.can_stop()) REQUIRE(engine.busy());
    engine.stop();
    engine.wait();
    engine.request(causal_session(300, 1));
    engine.wait();
    CHECK(!engine.is_stopped());
    std::shared_ptr<const Computed> last;
    while (auto result = engine.take_result()) last = std::move(result);
    REQUIRE(last != nullptr);
    CHECK(last->trace.shapes.nq == 300);
    CHECK(!last->digest.refining);
    CHECK(!engine.is_stopped());
  }

  TEST_CASE("a pass is stopped in the status line, and goes on there") {
    Harness h(1440, 900, 0);
    h.app().open(causal_session(30000, 1), {});
    const auto draw_until = [&](const char* name) {
      for (int frame = 0; frame < 20000 && !h.has(name); ++frame) h.frames(1);
      REQUIRE(h.has(name));
    };
    draw_until("status/Stop");
    h.click("status/Stop");
    draw_until("status/Go on");
    const double left_off = streamed_progress(*h.app().trace());
    CHECK(left_off < 1);
    h.click("tab/concat");
    h.frames(2);
    CHECK(h.has("stopped/matrix/concat/1"));
    h.app().wait_for_results();
    h.frames(2);
    CHECK(streamed_progress(*h.app().trace()) == left_off);
    h.key(Key::kPeriod, true);  // as the button does
    h.app().wait_for_results();
    h.frames(2);
    CHECK(streamed_progress(*h.app().trace()) == 1);
    CHECK(!h.has("status/Stop"));
    CHECK(!h.has("status/Go on"));
    CHECK(h.has("matrix/concat/1"));
  }

  TEST_CASE("every tab draws; a cell is hovered, chosen, copied, enlarged; an edit is computed anew") {
    Harness h(1440, 900, 0);
    h.app().open(causal_session(5, 3), {});
    h.app().wait_for_results();
    h.frames(3);
    h.app().wait_for_results();
    h.frames(3);
    REQUIRE(h.app().trace()->streams.size() == 3);
    CHECK(h.app().trace()->find({MatrixKind::kAttn, 0}) == nullptr);
    h.click("matrix/attn/1/cell/3,1");
    h.key(Key::kC, true);
    const auto cell = explain(*h.app().trace(), {MatrixKind::kAttn, 0}, 3, 1);
    REQUIRE(cell.has_value());
    CHECK(std::stof(h.clipboard()) == cell->stored);
    h.key(Key::kRight);
    h.key(Key::kC, true);
    CHECK(std::stof(h.clipboard()) != cell->stored);
    h.key(Key::kA, true);
    h.key(Key::kC, true);
    const std::string all = h.clipboard();
    CHECK(std::count(all.begin(), all.end(), '\n') == 4);
    h.key(Key::kM, true);
    CHECK(h.has("matrix/attn/1"));
    CHECK(!h.has("matrix/scores/1"));
    h.key(Key::kM, true);
    for (const char* tab : {"tab/heads", "tab/concat", "tab/head"}) {
      h.click(tab);
      h.frames(3);
    }
    CHECK(h.has("matrix/scores/1"));
    const float before = (*h.app().trace()->find({MatrixKind::kHeadsOut, 0}))(4, 0);
    h.double_click("matrix/v/1/cell/2,0");
    h.type("7");
    h.key(Key::kEnter);
    h.app().wait_for_results();
    h.frames(3);
    CHECK((*h.app().trace()->find({MatrixKind::kHeadsOut, 0}))(4, 0) != before);
    CHECK(h.app().trace()->streams.size() == 3);
  }

  TEST_CASE("sessions that fit are held") {
    Harness h;
    h.app().open(causal_session(5, 1), {});
    h.app().wait_for_results();
    h.frames(2);
    CHECK(h.app().trace()->streams.empty());
  }
}
