// Typed text into tokens, and tokens into their starting vectors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/attention/matrix.h"

namespace qkv {

enum class TokenSplit {
  kWhiteSpace,  // at white space only: 老鼠 is one token
  kCjk,         // at white space, and each CJK character by itself: 老 | 鼠
  kCharacters,  // every character, with the marks that belong to it; white space is dropped
};

// Empty pieces never become tokens. Combining marks, variation selectors and joined emoji stay with
// the character before them. Invalid UTF-8 becomes U+FFFD.
std::vector<std::string> split_tokens(std::string_view text, TokenSplit split);

// The text that split_tokens(·, split) turns back into these tokens, where such a text exists.
std::string join_tokens(const std::vector<std::string>& tokens, TokenSplit split);

// Which old row each new row takes its numbers from (−1 = none): the longest common subsequence,
// so that tokens that stay keep their rows. Size of `after`.
std::vector<int> align_tokens(const std::vector<std::string>& before, const std::vector<std::string>& after);

// FNV-1a, 64 bits: the same on every machine and in every version.
std::uint64_t stable_hash(std::string_view text);

// The row of a new token: `size` numbers in [−1, 1] rounded to one decimal that depend only on `text`
// and `salt` (which matrix), so that the same word is the same vector everywhere.
RowVector token_vector(std::string_view text, std::string_view salt, Index size);

// Seeded uniform numbers in [−1, 1] rounded to `decimals`, the same on every machine (SplitMix64).
Matrix random_matrix(std::uint64_t seed, Index rows, Index cols, int decimals = 1);

}  // namespace qkv
