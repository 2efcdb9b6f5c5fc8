// Sessions of attention weights alone, for tests.
#pragma once

#include <string>

#include "core/session/session.h"

namespace qkv::test {

// Weights that differ in every cell and whose rows sum to 1 but for rounding.
inline Matrix given_matrix(int head, Index nq, Index nk) {
  Matrix weights(nq, nk);
  for (Index i = 0; i < nq; ++i) {
    for (Index j = 0; j < nk; ++j) weights(i, j) = static_cast<float>(1 + (7 * i + 3 * j + 5 * head) % 11);
    weights.row(i) /= weights.row(i).sum();
  }
  return weights;
}

// Tokens "a", "b", …; where Nq ≠ Nk the keys are "A", "B", ….
inline Session given_session(int heads, Index nq, Index nk) {
  Session session;
  session.title = "given";
  const auto names = [](Index count, char first) {
    std::vector<std::string> tokens;
    for (Index i = 0; i < count; ++i) tokens.push_back(std::string(1, static_cast<char>(first + i)));
    return tokens;
  };
  session.tokens = names(nq, 'a');
  if (nq != nk) session.key_tokens = names(nk, 'A');
  WeightsSource source;
  for (int head = 0; head < heads; ++head) source.attn.emplace_back(given_matrix(head, nq, nk));
  session.problem.source = std::move(source);
  return session;
}

}  // namespace qkv::test
