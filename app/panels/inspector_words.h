// What the inspector says about a cell, in words.
#pragma once

#include <string>

#include "core/attention/explain.h"
#include "core/session/session.h"

namespace qkv {

// `tokens` is how they are shown.
// "OUTPUT · ROW 追, COLUMN 2"
std::string cell_heading(MatrixId id, Index row, Index col, const Session& session, TokenStyle tokens);
// "O[追, 2]"
std::string cell_name(MatrixId id, Index row, Index col, const Session& session, TokenStyle tokens);
// One sentence: what the number means.
std::string cell_sentence(const Explanation& explanation, const Session& session, TokenStyle tokens);

}  // namespace qkv
