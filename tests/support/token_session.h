// A session of given tokens, for tests of what is written of them.
#pragma once

#include <string>
#include <vector>

#include "core/session/session.h"

namespace qkv::test {

// One head, d = 4, Q, K and V as random_matrix() of 1, 2, 3.
inline Session session_of(const std::vector<std::string>& tokens) {
  Session session;
  session.tokens = tokens;
  const auto n = static_cast<Index>(tokens.size());
  DirectSource source;
  source.q = {random_matrix(1, n, 4)};
  source.k = {random_matrix(2, n, 4)};
  source.v = {random_matrix(3, n, 4)};
  session.problem.source = source;
  return session;
}

}  // namespace qkv::test
