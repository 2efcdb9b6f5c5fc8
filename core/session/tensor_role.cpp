#include "core/session/tensor_role.h"

#include <algorithm>

namespace qkv {

std::string_view role_key(Role role) {
  constexpr std::array<std::string_view, kAllRoles.size()> kKeys = {
      "q",  "k",  "v",  "x",    "wq",   "wk",     "wv",         "bq",     "bk",
      "bv", "wo", "bo", "attn", "bias", "tokens", "key_tokens", "scores", "out"};
  return kKeys[static_cast<std::size_t>(role)];
}

std::optional<Role> role_from_key(std::string_view key) {
  const auto* found = std::ranges::find(kAllRoles, key, role_key);
  return found == kAllRoles.end() ? std::nullopt : std::optional(*found);
}

std::string_view role_words(Role role) {
  constexpr std::array<std::string_view, kAllRoles.size()> kWords = {"queries",
                                                                     "keys",
                                                                     "values",
                                                                     "rows of X",
                                                                     "weights of the queries",
                                                                     "weights of the keys",
                                                                     "weights of the values",
                                                                     "bias of the queries",
                                                                     "bias of the keys",
                                                                     "bias of the values",
                                                                     "output projection",
                                                                     "bias of the output",
                                                                     "attention weights",
                                                                     "bias of the scores",
                                                                     "tokens",
                                                                     "tokens of the keys",
                                                                     "scores",
                                                                     "output"};
  return kWords[static_cast<std::size_t>(role)];
}

RoleForm form_of(Role role) {
  switch (role) {
    case Role::kQ:
    case Role::kK:
    case Role::kV:
      return RoleForm::kHeads;
    case Role::kX:
    case Role::kOut:
      return RoleForm::kRows;
    case Role::kWq:
    case Role::kWk:
    case Role::kWv:
      return RoleForm::kWeights;
    case Role::kWo:
      return RoleForm::kConcat;
    case Role::kBq:
    case Role::kBk:
    case Role::kBv:
    case Role::kBo:
      return RoleForm::kRow;
    case Role::kAttn:
    case Role::kScores:
      return RoleForm::kCells;
    case Role::kBias:
      return RoleForm::kOneCells;
    case Role::kTokens:
    case Role::kKeyTokens:
      return RoleForm::kWords;
  }
  return RoleForm::kRows;
}

bool is_key_side(Role role) {
  constexpr std::array kKeySide = {Role::kK, Role::kV, Role::kWk, Role::kWv, Role::kBk, Role::kBv};
  return std::ranges::find(kKeySide, role) != kKeySide.end();
}

std::uint64_t place_among_three(Role role) {
  constexpr std::array kThrees = {Role::kQ, Role::kWq, Role::kBq};
  for (const Role first : kThrees) {
    const int place = static_cast<int>(role) - static_cast<int>(first);
    if (place >= 0 && place < 3) return static_cast<std::uint64_t>(place);
  }
  return 0;
}

}  // namespace qkv
