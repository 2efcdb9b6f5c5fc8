#include "core/session/token_bytes.h"

#include <algorithm>
#include <array>

#include "core/base/utf8.h"

namespace qkv {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Between [ and ].
bool is_special_in_brackets(std::string_view name) {
  if (name == "gMASK" || name.starts_with("unused")) return true;
  if (name.starts_with('/')) name.remove_prefix(1);
  return name.size() >= 3 && std::ranges::all_of(name, [](char c) { return is_upper(c) || is_digit(c) || c == '_'; }) &&
         is_upper(name[0]);
}

// Between < and >.
bool is_special_in_angles(std::string_view name) {
  static constexpr std::array<std::string_view, 10> kNames = {"s",   "pad", "unk", "mask", "bos",
                                                              "eos", "cls", "sep", "eod",  "eop"};
  constexpr std::string_view kWideBar = "\uFF5C";
  const auto between = [&](std::string_view bar) {
    return name.size() > 2 * bar.size() && name.starts_with(bar) && name.ends_with(bar) &&
           name.find_first_of(" \t\n\r") == std::string_view::npos;
  };
  if (between("|") || between(kWideBar)) return true;
  if (name.starts_with('/')) name.remove_prefix(1);
  if (std::ranges::find(kNames, name) != kNames.end() || name.starts_with("unused")) return true;
  return name.find('_') != std::string_view::npos &&
         std::ranges::all_of(name, [](char c) { return is_lower(c) || is_upper(c) || is_digit(c) || c == '_'; });
}

std::optional<std::string> byte_level_bytes(std::string_view token) {
  std::string bytes;
  bytes.reserve(token.size());
  for (std::size_t pos = 0; pos < token.size();) {
    const std::optional<std::uint8_t> byte = byte_level_byte(next_code_point(token, pos));
    if (!byte) return std::nullopt;
    bytes += static_cast<char>(*byte);
  }
  return bytes;
}

std::string sentence_piece_bytes(std::string_view token) {
  if (const std::optional<std::uint8_t> byte = piece_byte(token)) return {static_cast<char>(*byte)};
  std::string bytes;
  bytes.reserve(token.size());
  while (!token.empty()) {
    const std::size_t mark = std::min(token.find(kPieceSpace), token.size());
    bytes += token.substr(0, mark);
    if (mark < token.size()) bytes += ' ';
    token.remove_prefix(std::min(mark + kPieceSpace.size(), token.size()));
  }
  return bytes;
}

}  // namespace

std::optional<std::uint8_t> byte_level_byte(char32_t character) {
  const bool itself = (character >= 0x21 && character <= 0x7E) || (character >= 0xA1 && character <= 0xFF);
  if (itself && character != 0xAD) return static_cast<std::uint8_t>(character);
  if (character < 0x100 || character > 0x143) return std::nullopt;
  const char32_t nth = character - 0x100;  // of the bytes 00 … 20, 7F … A0, AD
  if (nth <= 0x20) return static_cast<std::uint8_t>(nth);
  return static_cast<std::uint8_t>(nth == 0x43 ? 0xAD : 0x7F + (nth - 0x21));
}

std::optional<std::uint8_t> piece_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const int high = hex_digit(token[3]), low = hex_digit(token[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<std::uint8_t>(16 * high + low);
}

bool is_special_token(std::string_view token) {
  if (token.size() < 3) return false;
  const std::string_view name = token.substr(1, token.size() - 2);
  if (token.front() == '[' && token.back() == ']') return is_special_in_brackets(name);
  return token.front() == '<' && token.back() == '>' && is_special_in_angles(name);
}

std::optional<std::string> token_bytes(std::string_view token, TokenStyle style) {
  if (style != TokenStyle::kStored && is_special_token(token)) return std::nullopt;
  switch (style) {
    case TokenStyle::kByteLevel:
      return byte_level_bytes(token);
    case TokenStyle::kSentencePiece:
      return sentence_piece_bytes(token);
    case TokenStyle::kWordPiece:
      if (token.size() > kContinuation.size() && token.starts_with(kContinuation))
        token.remove_prefix(kContinuation.size());
      break;
    case TokenStyle::kStored:
    case TokenStyle::kPlain:
      break;
  }
  return std::string(token);
}

ByteStep next_step(std::string_view text, std::size_t pos) {
  constexpr char32_t kReplacement = 0xFFFD;
  ByteStep step{pos, pos, 0, true};
  step.character = next_code_point(text, step.end);
  // U+FFFD itself takes three bytes; for a byte that is no character it takes one.
  step.is_character = step.character != kReplacement || step.end - step.begin > 1;
  return step;
}

}  // namespace qkv
