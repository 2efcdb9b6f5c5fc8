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

TEST_CASE("an edit of a result that was taken back patches it, at once where that is cheap") {
  Engine engine({});
  Session session = large_session(400);
  std::shared_ptr<const Computed> shown;
  const auto show = [&] {
    engine.wait();
    engine.recycle(std::exchange(shown, engine.take_result()));
  };
  for (int edit = 0; edit < 6; ++edit) {
    auto& source = std::get<DirectSource>(session.problem.source);
    (edit % 2 == 0 ? source.q : source.k)[1].edit()(7, 3) += 0.5f;
    engine.request(session);
    // The first two have nothing to patch: one result is on screen, and one is not there yet.
    if (edit >= 2) CHECK_FALSE(engine.busy());
    show();
    REQUIRE(shown != nullptr);
    const Result<Trace> fresh = forward(session.problem);
    REQUIRE(fresh.ok());
    const auto off = (*shown->trace.concat - *fresh.value().concat).cwiseAbs().maxCoeff();
    CHECK(off <= 1e-5f);  // weights of 400 keys times values up to 4, rounded in float32
    const TraceDigest whole = digest(fresh.value());
    for (std::size_t head = 0; head < 4; ++head) {
      CHECK(shown->digest.heads[head].stats.entropy == doctest::Approx(whole.heads[head].stats.entropy).epsilon(1e-5));
      CHECK(shown->digest.heads[head].scores.high == doctest::Approx(whole.heads[head].scores.high).epsilon(1e-5));
    }
  }
}
