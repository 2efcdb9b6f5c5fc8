// Everything that a person can do to a session, as data.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/session/session.h"

namespace qkv {

enum class Side { kQueries, kKeys };  // kKeys only where a session has key_tokens

struct SetTokens {
  Side side = Side::kQueries;
  std::vector<std::string> tokens;
};  // rows aligned by align_tokens
struct RenameToken {
  Side side = Side::kQueries;
  Index index = 0;
  std::string text;
};  // the row keeps its numbers
struct InsertToken {
  Side side = Side::kQueries;
  Index index = 0;
  std::string text;
};
struct RemoveToken {
  Side side = Side::kQueries;
  Index index = 0;
};
struct MoveToken {
  Side side = Side::kQueries;
  Index from = 0, to = 0;
};  // its row moves with it
struct SetSplit {
  TokenSplit split = TokenSplit::kWhiteSpace;
};

struct SetCell {
  MatrixId id;
  Index row = 0, col = 0;
  float value = 0;
};
struct SetBlock {
  MatrixId id;
  Index row = 0, col = 0;
  Matrix values;
};  // must lie inside the matrix
enum class Fill { kValue, kIdentity, kRandom };
struct FillBlock {
  MatrixId id;
  Rect rect;
  Fill fill = Fill::kValue;
  float value = 0;
  std::uint64_t seed = 1;
};

// Numbers that still have a place are kept; new ones come from token_vector (rows of tokens) or
// random_matrix (weights), new heads likewise.
struct SetHeads {
  int heads = 1;
};  // kv_heads follows where it would no longer divide
struct SetKvHeads {
  int kv_heads = 1;
};  // must divide heads
struct SetDk {
  Index d_k = 1;
};
struct SetDv {
  Index d_v = 1;
};
struct SetDModel {
  Index d_model = 1;
};  // columns of X and rows of W; projected source only
struct SetDOut {
  Index d_out = 1;
};  // columns of W^O

// A session of weights alone has no Q, K and V: new heads and the rows and columns of new tokens are 0 there, and what
// needs Q, K and V is refused.
//
// To projected: X = the rows of Q, K, V side by side and W that picks them out, so every number stays.
// To direct: the Q, K, V of the moment. Not to projected with key_tokens.
enum class SourceKind { kDirect, kProjected };
struct SetSourceKind {
  SourceKind kind = SourceKind::kDirect;
};
struct SetOutputProjection {
  bool on = true;
};  // W^O: identity where square, else random; off removes W^O and b^O
struct SetBiases {
  bool on = true;
};  // b^Q, b^K, b^V (projected) and b^O (with W^O), all zero at first
struct SetScoreBias {
  bool on = true;
};  // the options' bias: all zero at first; on again leaves the one that is there
struct SetCrossAttention {
  bool on = true;
};  // on: key_tokens starts as a copy of tokens; off: keys become the queries' tokens

struct SetAttention {
  AttentionOptions options;
};
struct SetTitle {
  std::string title;
};
struct SetView {
  ViewSettings view;
};  // no undo step
struct ReplaceSession {
  Session session;
};

using Action =
    std::variant<SetTokens, RenameToken, InsertToken, RemoveToken, MoveToken, SetSplit, SetCell, SetBlock, FillBlock,
                 SetHeads, SetKvHeads, SetDk, SetDv, SetDModel, SetDOut, SetSourceKind, SetOutputProjection, SetBiases,
                 SetScoreBias, SetCrossAttention, SetAttention, SetTitle, SetView, ReplaceSession>;

// The session after the action, or kBadInput saying in one line why it can't be; the given session
// is left as it is. key_valid and the bias follow their tokens (new: valid, 0), the sink its heads (new: 0).
// Pure: same session and action, same result.
// Write qkv::apply: for a session that is not const, std::apply (found through the variant) fits better.
Result<Session> apply(const Session& session, const Action& action);

// Short text for Edit › Undo ("edit Q[2, 1]", "tokens").
std::string describe(const Action& action);
bool makes_undo_step(const Action& action);

}  // namespace qkv
