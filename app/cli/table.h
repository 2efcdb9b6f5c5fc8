// Rows of text with their columns lined up, for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace qkv::cli {

// Two spaces between columns; CJK characters count as two. Columns from `numbers_from` on stand to the right, as
// numbers do.
std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t numbers_from = SIZE_MAX);

}  // namespace qkv::cli
