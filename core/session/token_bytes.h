// The bytes that tokens stand for in each style, and which tokens are special. Shared by token_text.cpp and
// token_style.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/session/token_text.h"

namespace qkv {

inline constexpr std::string_view kByteLevelSpace = "\u0120";    // Ġ
inline constexpr std::string_view kByteLevelNewLine = "\u010A";  // Ċ
inline constexpr std::string_view kPieceSpace = "\u2581";        // ▁ of SentencePiece
inline constexpr std::string_view kContinuation = "##";          // of WordPiece

// The byte that a character stands for in GPT-2's table: printable Latin-1 characters stand for themselves, the other
// 68 bytes, in order, are U+0100 … U+0143.
std::optional<std::uint8_t> byte_level_byte(char32_t character);

// The byte of "<0x0A>"; nullopt for any other token.
std::optional<std::uint8_t> piece_byte(std::string_view token);

// The bytes of a token; nullopt for a special token, and for one that GPT-2's table does not spell. Of a WordPiece
// without its ##. In byte-level and SentencePiece the bytes of neighbours may form characters.
std::optional<std::string> token_bytes(std::string_view token, TokenStyle style);

// A character of `text`, or a byte that is part of none.
struct ByteStep {
  std::size_t begin = 0, end = 0;
  char32_t character = 0;
  bool is_character = false;
};
ByteStep next_step(std::string_view text, std::size_t pos);

}  // namespace qkv
