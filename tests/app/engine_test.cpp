// The engine: small problems at once, large ones off the UI thread, the newest wins.
#include <doctest/doctest.h>

#include <atomic>

#include "app/engine/engine.h"

using namespace qkv;

namespace {

Session large_session(int tokens) {
  Session session;
  for (int i = 0; i < tokens; ++i) session.tokens.push_back(std::to_string(i));
  DirectSource source;
  for (int head = 0; head < 4; ++head) {
    source.q.emplace_back(random_matrix(1 + static_cast<std::uint64_t>(head), tokens, 32));
    source.k.emplace_back(random_matrix(11 + static_cast<std::uint64_t>(head), tokens, 32));
    source.v.emplace_back(random_matrix(21 + static_cast<std::uint64_t>(head), tokens, 32));
  }
  session.problem.source = source;
  return session;
}

}  // namespace

TEST_CASE("a small session is computed before request returns") {
  Engine engine({});
  engine.request(worked_example());
  CHECK_FALSE(engine.busy());
  const auto result = engine.take_result();
  REQUIRE(result != nullptr);
  CHECK(result->trace.heads[0].scores(1, 0) == 5.0f);
  CHECK(engine.take_result() == nullptr);
}

TEST_CASE("a large session comes later and wakes the window") {
  std::atomic<int> woken = 0;
  Engine engine([&] { ++woken; });
  engine.request(large_session(300));
  engine.wait();
  const auto result = engine.take_result();
  REQUIRE(result != nullptr);
  CHECK(result->trace.shapes.nq == 300);
  CHECK(woken >= 0);
}

TEST_CASE("the newest request is the last result") {
  Engine engine({});
  for (int tokens = 200; tokens < 260; tokens += 10) engine.request(large_session(tokens));
  engine.wait();
  std::shared_ptr<const Computed> last;
  while (auto result = engine.take_result()) last = result;
  REQUIRE(last != nullptr);
  CHECK(last->trace.shapes.nq == 250);
}

TEST_CASE("a session that contradicts itself is an error, not a crash") {
  Session broken = worked_example();
  broken.tokens.push_back("one too many");
  Engine engine({});
  engine.request(broken);
  engine.wait();
  CHECK(engine.take_result() == nullptr);
  CHECK(engine.take_error().has_value());
}

TEST_CASE("leaving while the engine works is safe") {
  for (int i = 0; i < 5; ++i) {
    Engine engine({});
    engine.request(large_session(400));
  }
  CHECK(true);
}
