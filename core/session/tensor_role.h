// What a tensor can be to a session: its roles, and which part of one tensor plays one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace qkv {

// The first of each threesome is followed by its two sisters, so that a tensor of Q, K and V in one can be split.
enum class Role {
  kQ,
  kK,
  kV,
  kX,
  kWq,
  kWk,
  kWv,
  kBq,
  kBk,
  kBv,
  kWo,
  kBo,
  kAttn,
  kBias,  // added to the scores
  kTokens,
  kKeyTokens,
  kScores,  // not an input: what its shape says settles how others are read
  kOut      // not an input: what another implementation got
};
inline constexpr std::array kAllRoles = {Role::kQ,         Role::kK,      Role::kV,    Role::kX,    Role::kWq,
                                         Role::kWk,        Role::kWv,     Role::kBq,   Role::kBk,   Role::kBv,
                                         Role::kWo,        Role::kBo,     Role::kAttn, Role::kBias, Role::kTokens,
                                         Role::kKeyTokens, Role::kScores, Role::kOut};

// "q", "wq", "key_tokens", …: as in files and on the command line (matrix_id.h where the two meet).
std::string_view role_key(Role role);
std::optional<Role> role_from_key(std::string_view key);
// "queries", "weights of the queries", … for sentences and lists.
std::string_view role_words(Role role);

// What the role makes of its tensor.
enum class RoleForm {
  kHeads,     // H × [N, d]
  kRows,      // [N, d_model]
  kWeights,   // [d_model, H·d]
  kConcat,    // [H·d_v, d_out]
  kRow,       // [1, n]
  kCells,     // H × [Nq, Nk]
  kOneCells,  // [Nq, Nk]
  kWords      // N texts
};
RoleForm form_of(Role role);
// Of the keys' side: counted by kv_heads where others count heads.
bool is_key_side(Role role);

// 0, 1 or 2: which part of a tensor that holds the three of Q, K and V the role takes. 0 where it takes none.
std::uint64_t place_among_three(Role role);

}  // namespace qkv
