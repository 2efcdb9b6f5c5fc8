// Tokens that no file named. Files and the command line call them by their positions from 0; the window counts rows
// from 1 as it does columns and heads.
#pragma once

#include "core/session/session.h"

namespace qkv {

// Names the tokens of a session that was made of tensors from 1 on, each side that is called by its positions alone and
// that no tensor named.
void number_unnamed_tokens(Session& session);

}  // namespace qkv
