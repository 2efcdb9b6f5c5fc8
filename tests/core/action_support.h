// Applying actions in tests: success and refusal checked, the given session untouched; sessions to start from.
#pragma once

#include <doctest/doctest.h>

#include <limits>

#include "core/session/action.h"
#include "session_equal.h"

namespace qkv::test {

using Tokens = std::vector<std::string>;

inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

inline const Matrix& numbers(const Session& session, MatrixKind kind, int head = 0) {
  const SharedMatrix* matrix = find_input(session, {kind, head});
  REQUIRE(matrix != nullptr);
  return matrix->get();
}

// The session after the action, checked; the given one stays as it was.
inline Session after(const Session& session, const Action& action) {
  const Session copy = session;
  Result<Session> result = qkv::apply(session, action);
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().message));
  REQUIRE(check_session(result.value()).ok());
  REQUIRE(same_session(session, copy));
  return std::move(result).value();
}

// The message of an action that can't be, which must be one line and change nothing.
inline std::string refusal(const Session& session, const Action& action) {
  const Session copy = session;
  const Result<Session> result = qkv::apply(session, action);
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code == ErrorCode::kBadInput);
  CHECK(result.error().message.find('\n') == std::string::npos);
  REQUIRE(same_session(session, copy));
  return result.error().message;
}

inline bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// X [3, 4], two heads of d_k 2 and d_v 3 with one key/value head, W^O [6, 5], all biases; no two numbers equal.
inline Session projected_example() {
  Session session = worked_example();
  const auto counting = [](Index rows, Index cols, float first) {
    Matrix matrix(rows, cols);
    for (Index i = 0; i < matrix.size(); ++i) matrix.data()[i] = first + static_cast<float>(i);
    return SharedMatrix(std::move(matrix));
  };
  ProjectedSource source;
  source.heads = 2;
  source.kv_heads = 1;
  source.x = counting(3, 4, 1);
  source.wq = counting(4, 4, 100);
  source.wk = counting(4, 2, 200);
  source.wv = counting(4, 3, 300);
  source.bq = counting(1, 4, 400);
  source.bk = counting(1, 2, 500);
  source.bv = counting(1, 3, 600);
  session.problem.source = std::move(source);
  session.problem.wo = counting(6, 5, 700);
  session.problem.bo = counting(1, 5, 800);
  REQUIRE(check_session(session).ok());
  return session;
}

inline Session cross_example() {
  Session session = after(worked_example(), SetCrossAttention{true});
  return after(session, SetTokens{Side::kKeys, {"貓", "追", "老鼠", "跑"}});
}

}  // namespace qkv::test
