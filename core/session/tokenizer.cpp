#include "core/session/tokenizer.h"

#include <algorithm>
#include <cmath>

#include "core/base/utf8.h"

namespace qkv {
namespace {

constexpr char32_t kZeroWidthSpace = 0x200B;
constexpr char32_t kZeroWidthJoiner = 0x200D;
constexpr char32_t kByteOrderMark = 0xFEFF;

// The zero-width space marks a word boundary, in Thai and Khmer texts above all.
bool separates(char32_t c) { return is_white_space(c) || c == kZeroWidthSpace; }

// Format characters that have no glyph: soft hyphen, joiners, direction marks, invisible operators.
bool is_invisible(char32_t c) {
  return c == 0x00AD || (c >= 0x200C && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) ||
         c == kByteOrderMark;
}

bool is_regional_indicator(char32_t c) { return c >= 0x1F1E6 && c <= 0x1F1FF; }

// Vowels and final consonants of a decomposed Hangul syllable.
bool is_jamo_tail(char32_t c) { return c >= 0x1160 && c <= 0x11FF; }

// A virama and the consonant that it binds: Devanagari, Bengali, Gujarati, Oriya, Telugu, Malayalam
// (rule GB9c of UAX #29). The blocks of these scripts hold 0x80 code points in the same order.
bool is_conjunct(char32_t virama, char32_t consonant) {
  constexpr std::u32string_view kViramas = U"\u094D\u09CD\u0ACD\u0B4D\u0C4D\u0D4D";
  if (kViramas.find(virama) == std::u32string_view::npos || virama / 0x80 != consonant / 0x80) return false;
  const char32_t offset = consonant % 0x80;
  return (offset >= 0x15 && offset <= 0x39) || (offset >= 0x58 && offset <= 0x5F);
}

// Where the character that begins at `pos` ends: its first code point `base` and all that belongs to it.
std::size_t character_end(std::string_view text, std::size_t pos, char32_t& base) {
  base = next_code_point(text, pos);
  char32_t previous = base;
  bool half_flag = is_regional_indicator(base);
  while (pos < text.size()) {
    std::size_t after = pos;
    const char32_t c = next_code_point(text, after);
    if (separates(c)) break;
    const bool joined = joins_previous(c) || is_invisible(c) || is_jamo_tail(c) || previous == kZeroWidthJoiner ||
                        is_conjunct(previous, c) || (half_flag && is_regional_indicator(c));
    if (!joined) break;
    half_flag = false;
    previous = c;
    pos = after;
  }
  return pos;
}

bool is_visible(std::string_view piece) {
  for (std::size_t pos = 0; pos < piece.size();) {
    if (!is_invisible(next_code_point(piece, pos))) return true;
  }
  return false;
}

// Sebastiano Vigna's SplitMix64 (public domain): one 64-bit state, the same sequence everywhere.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  // A whole number of −limit … limit. The remainder's bias is below limit / 2^63.
  std::int64_t symmetric(std::int64_t limit) {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(2 * limit + 1)) - limit;
  }

 private:
  std::uint64_t state_;
};

}  // namespace

std::vector<std::string> split_tokens(std::string_view text, TokenSplit split) {
  const std::string clean = sanitize_utf8(text);
  std::vector<std::string> tokens;
  std::string piece;
  const auto finish = [&] {
    if (is_visible(piece)) tokens.push_back(piece);
    piece.clear();
  };
  for (std::size_t pos = 0; pos < clean.size();) {
    std::size_t after = pos;
    const char32_t c = next_code_point(clean, after);
    if (separates(c)) finish();
    if (separates(c) || (pos == 0 && c == kByteOrderMark)) {
      pos = after;
      continue;
    }
    char32_t base = 0;
    const std::size_t end = character_end(clean, pos, base);
    const bool alone = split == TokenSplit::kCharacters || (split == TokenSplit::kCjk && is_cjk(base));
    if (alone) finish();
    piece.append(clean, pos, end - pos);
    if (alone) finish();
    pos = end;
  }
  finish();
  return tokens;
}

std::string join_tokens(const std::vector<std::string>& tokens, TokenSplit split) {
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) {
      // Without a space wherever the two part by themselves: 貓追 reads better than 貓 追.
      const bool parts = split != TokenSplit::kWhiteSpace &&
                         split_tokens(tokens[i - 1] + tokens[i], split) == std::vector{tokens[i - 1], tokens[i]};
      if (!parts) text += ' ';
    }
    text += tokens[i];
  }
  return text;
}

std::uint64_t stable_hash(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001B3u;
  }
  return hash;
}

RowVector token_vector(std::string_view text, std::string_view salt, Index size) {
  std::string key(text);
  key += '\0';
  key += salt;
  SplitMix64 random(stable_hash(key));
  RowVector row(size);
  for (Index c = 0; c < size; ++c) row[c] = static_cast<float>(static_cast<double>(random.symmetric(10)) / 10.0);
  return row;
}

Matrix random_matrix(std::uint64_t seed, Index rows, Index cols, int decimals) {
  const std::int64_t steps = std::llround(std::pow(10.0, std::clamp(decimals, 0, 9)));
  SplitMix64 random(seed);
  Matrix matrix(rows, cols);
  for (Index r = 0; r < rows; ++r) {
    for (Index c = 0; c < cols; ++c) {
      matrix(r, c) = static_cast<float>(static_cast<double>(random.symmetric(steps)) / static_cast<double>(steps));
    }
  }
  return matrix;
}

}  // namespace qkv
