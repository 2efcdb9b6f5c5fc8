// The parts that apply() is made of: one apply_to() per action. Private to core/session.
#pragma once

#include "core/session/action.h"

namespace qkv::parts {

// Each gets its own copy of the session with its shapes, and returns it changed or the reason why not.
using Outcome = Result<Session>;

// action.cpp
Outcome apply_to(Session session, const Shapes& shapes, const SetSplit& action);
Outcome apply_to(Session session, const Shapes& shapes, const SetAttention& action);
Outcome apply_to(Session session, const Shapes& shapes, const SetTitle& action);
Outcome apply_to(Session session, const Shapes& shapes, const SetView& action);
Outcome apply_to(Session session, const Shapes& shapes, const ReplaceSession& action);

// token_actions.cpp
Outcome apply_to(Session session, const Shapes& shapes, const SetTokens& action);
Outcome apply_to(Session session, const Shapes& shapes, const RenameToken& action);
Outcome apply_to(Session session, const Shapes& shapes, const InsertToken& action);
Outcome apply_to(Session session, const Shapes& shapes, const RemoveToken& action);
Outcome apply_to(Session session, const Shapes& shapes, const MoveToken& action);
Outcome apply_to(Session session, const Shapes& shapes, const SetCrossAttention& action);

// edit.cpp
Outcome apply_to(Session session, const Shapes& shapes, const SetCell& action);
Outcome apply_to(Session session, const Shapes& shapes, const SetBlock& action);
Outcome apply_to(Session session, const Shapes& shapes, const FillBlock& action);

// resize.cpp
Outcome apply_to(Session session, const Shapes& shapes, const SetHeads& action);
Outcome apply_to(Session session, const Shapes& shapes, const SetKvHeads& action);
Outcome apply_to(Session session, const Shapes& shapes, const SetDk& action);
Outcome apply_to(Session session, const Shapes& shapes, const SetDv& action);
Outcome apply_to(Session session, const Shapes& shapes, const SetDModel& action);
Outcome apply_to(Session session, const Shapes& shapes, const SetDOut& action);

// source_actions.cpp
Outcome apply_to(Session session, const Shapes& shapes, const SetSourceKind& action);
Outcome apply_to(Session session, const Shapes& shapes, const SetOutputProjection& action);
Outcome apply_to(Session session, const Shapes& shapes, const SetBiases& action);
Outcome apply_to(Session session, const Shapes& shapes, const SetScoreBias& action);

// Helpers, in resize.cpp.

// "q", 2 → "q2": the salt of a head's token vectors and the seed of its weights.
std::string head_name(const char* matrix, Index head);

// Row `row` of head `head` of a weight matrix: random_matrix seeded by those alone, so that a number
// does not depend on the order of the steps that made room for it.
RowVector weight_row(const char* matrix, Index head, Index row, Index size);

// kBadInput where the matrices of `after`, with a bias [Nq, Nk] or without, together are too large to make; shrinking
// always passes.
Status check_growth(const Shapes& before, const Shapes& after, bool with_bias = false);

// The same for a session of these shapes that gets a bias.
Status check_new_bias(const Shapes& shapes);

// The refusal of what needs Q, K and V where only weights are given: "there is no WHAT: …".
Error only_weights(const std::string& what);

// The number that a person counts an index by: "1" for 0. Any index, since it comes from outside.
std::string place_text(Index index);

// kBadInput "WHAT = VALUE is out of range: 1 … MOST".
Status check_range(const char* what, Index value, Index most);

}  // namespace qkv::parts
