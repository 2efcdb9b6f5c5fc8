// What the inspector says about a cell, in words.
#pragma once

#include <string>

#include "core/attention/explain.h"
#include "core/session/session.h"

namespace qkv {

// "OUTPUT · ROW 追, COLUMN 2"
std::string cell_heading(MatrixId id, Index row, Index col, const Session& session);
// "O[追, 2]"
std::string cell_name(MatrixId id, Index row, Index col, const Session& session);
// One sentence: what the number means.
std::string cell_sentence(const Explanation& explanation, const Session& session);

}  // namespace qkv
