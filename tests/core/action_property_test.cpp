// Long random sequences of actions: whatever a person does, the session agrees with itself and undo is exact.
#include <doctest/doctest.h>

#include <limits>
#include <random>

#include "core/session/history.h"
#include "session_equal.h"

using namespace qkv;
using qkv::test::same_session;

namespace {

class RandomActions {
 public:
  explicit RandomActions(std::uint64_t seed) : random_(seed) {}

  // Mostly possible for `session`; some are not, on purpose.
  Action next(const Session& session) {
    switch (below(24)) {
      case 0:
        return SetTokens{side(session), tokens()};
      case 1:
        return RenameToken{side(session), index(session), word()};
      case 2:
      case 3:
        return InsertToken{side(session), index(session), word()};
      case 4:
        return RemoveToken{side(session), index(session)};
      case 5:
        return MoveToken{side(session), index(session), index(session)};
      case 6:
        return SetCell{matrix(), below(8) - 1, below(8), value()};
      case 7:
        return SetBlock{matrix(), below(4), below(4), Matrix::Constant(below(4), below(4), value())};
      case 8:
        return FillBlock{
            matrix(), {below(3), below(3), below(4), below(4)}, static_cast<Fill>(below(3)), value(), random_()};
      case 9:
        return SetHeads{static_cast<int>(below(7))};
      case 10:
        return SetKvHeads{static_cast<int>(below(5))};
      case 11:
        return SetDk{below(6)};
      case 12:
        return SetDv{below(6)};
      case 13:
        return SetDModel{below(12)};
      case 14:
        return SetDOut{below(10)};
      case 15:
        return SetSourceKind{static_cast<SourceKind>(below(2))};
      case 16:
        return SetOutputProjection{below(3) > 0};
      case 17:
        return SetBiases{below(2) > 0};
      case 18:
        return SetCrossAttention{below(2) > 0};
      case 19:
        return SetAttention{options(session)};
      case 20:
        return SetTitle{word()};
      case 21:
        return SetView{view()};
      case 22:
        return SetScoreBias{below(3) > 0};
      default:
        return SetSplit{static_cast<TokenSplit>(below(3))};
    }
  }

  Index below(Index limit) { return static_cast<Index>(random_() % static_cast<std::uint64_t>(limit)); }

 private:
  Side side(const Session& session) { return below(session.key_tokens ? 2 : 20) == 0 ? Side::kKeys : Side::kQueries; }
  Index index(const Session& session) { return below(static_cast<Index>(session.tokens.size()) + 2) - (below(9) == 0); }
  std::string word() { return below(30) == 0 ? "" : "w" + std::to_string(below(12)); }
  std::vector<std::string> tokens() {
    std::vector<std::string> list(static_cast<std::size_t>(below(8)));
    for (std::string& token : list) token = "w" + std::to_string(below(12));
    return list;
  }
  MatrixId matrix() {
    return {kAllMatrixKinds[static_cast<std::size_t>(below(kAllMatrixKinds.size()))], static_cast<int>(below(4))};
  }
  float value() {
    if (below(200) == 0) return std::numeric_limits<float>::quiet_NaN();
    return static_cast<float>(below(2001) - 1000) / 100.0f;
  }
  AttentionOptions options(const Session& session) {
    AttentionOptions options;
    options.causal = below(2) > 0;
    if (below(2) > 0) options.scale = 0.5f;
    if (below(2) > 0) {
      options.key_valid.resize(session.keys().size());
      for (std::uint8_t& valid : options.key_valid) valid = below(2) > 0;
    }
    const auto heads = [&] {
      const auto* direct = std::get_if<DirectSource>(&session.problem.source);
      return direct ? direct->q.size()
                    : static_cast<std::size_t>(std::get<ProjectedSource>(session.problem.source).heads);
    };
    if (below(4) == 0) options.rope = Rope{100, static_cast<RopeStyle>(below(2))};
    if (below(4) == 0) options.softcap = 3.0f;
    options.alibi = below(4) == 0;
    if (below(2) > 0) {
      options.bias = SharedMatrix(Matrix::Constant(static_cast<Index>(session.tokens.size()),
                                                   static_cast<Index>(session.keys().size()), value()));
    }
    if (below(4) == 0) options.window = below(4);  // 0 is refused
    if (below(2) > 0) options.sink.resize(heads(), 1.5f);
    return options;
  }
  ViewSettings view() {
    ViewSettings view;
    view.head = static_cast<int>(below(8)) - 1;
    view.decimals = static_cast<int>(below(7));
    return view;
  }

  std::mt19937_64 random_;
};

void check_step(const History& history) {
  const Result<Shapes> shapes = check_session(history.current());
  REQUIRE(shapes.ok());
  REQUIRE(history.current().view.head >= 0);
  REQUIRE(history.current().view.head < shapes.value().heads);
}

}  // namespace

TEST_CASE("thousands of random actions and back") {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    RandomActions actions(seed);
    const Session first = worked_example();
    History history(first, std::size_t{1} << 30);
    std::size_t done = 0, refused = 0;
    for (int i = 0; i < 4000; ++i) {
      const Action action = actions.next(history.current());
      const Session before = history.current();
      const std::size_t steps = history.steps();
      if (history.perform(action, static_cast<std::uint64_t>(i / 3 % 2 == 0 ? 0 : i / 3)).ok()) {
        ++done;
      } else {
        ++refused;
        REQUIRE(same_session(history.current(), before));
        REQUIRE(history.steps() == steps);
      }
      check_step(history);
    }
    CHECK(done > 2000);
    CHECK(refused > 200);
    const Session last = history.current();
    while (history.can_undo()) {
      history.undo();
      check_step(history);
    }
    CHECK(same_session(history.current(), first));
    CHECK_FALSE(history.is_modified());
    while (history.can_redo()) history.redo();
    CHECK(same_session(history.current(), last));
  }
}

TEST_CASE("undo and redo at random retrace the same sessions, within the bytes") {
  RandomActions actions(5);
  constexpr std::size_t kMaxBytes = 20000;
  History history(worked_example(), kMaxBytes);
  for (int i = 0; i < 5000; ++i) {
    const Index choice = actions.below(4);
    if (choice == 0 && history.can_undo()) {
      const Session before = history.current();
      history.undo();
      check_step(history);
      history.redo();
      REQUIRE(same_session(history.current(), before));
      history.undo();
    } else if (choice == 1) {
      history.redo();
    } else {
      (void)history.perform(actions.next(history.current()));
    }
    check_step(history);
    REQUIRE((history.bytes() <= kMaxBytes || history.steps() <= 1));
  }
}
