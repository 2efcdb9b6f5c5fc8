#include "app/unnamed_tokens.h"

#include <string>
#include <vector>

#include "core/session/tensor_origin.h"

namespace qkv {
namespace {

bool are_positions(const std::vector<std::string>& tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] != std::to_string(i)) return false;
  }
  return true;
}

void number(const Session& session, Role role, std::vector<std::string>& tokens) {
  const bool is_named = session.origin != nullptr && session.origin->mapping.find(role) != nullptr;
  if (is_named || !are_positions(tokens)) return;
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = std::to_string(i + 1);
}

}  // namespace

void number_unnamed_tokens(Session& session) {
  number(session, Role::kTokens, session.tokens);
  if (session.key_tokens) number(session, Role::kKeyTokens, *session.key_tokens);
}

}  // namespace qkv
