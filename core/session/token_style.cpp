// detect_token_style().
#include <algorithm>
#include <span>

#include "core/base/ascii.h"
#include "core/session/token_bytes.h"

namespace qkv {
namespace {

// Tokens of each side that are asked: of longer texts the first, which are many enough to tell.
constexpr std::size_t kMostAsked = 4096;

using Asked = std::span<const std::string>;

struct Votes {
  std::size_t given = 0;
  std::size_t lone = 0;  // marks by themselves
  std::size_t against = 0;
};

struct Counts {
  Votes byte_level, sentence_piece, word_piece;
  std::size_t special = 0, others = 0;
};

bool is_control(char32_t c) { return (c < 0x20 && c != U'\n' && c != U'\r' && c != U'\t') || (c >= 0x7F && c < 0xA0); }

bool continues_a_word(std::string_view token) {
  if (token.size() <= kContinuation.size() || !token.starts_with(kContinuation)) return false;
  const char next = token[kContinuation.size()];
  return (next >= '0' && next <= '9') || (next >= 'A' && next <= 'Z') || (next >= 'a' && next <= 'z') ||
         static_cast<unsigned char>(next) >= 0x80;
}

// What the bytes of a run of tokens say: `ends` are where the tokens end in it.
struct ByteRun {
  std::string bytes;
  std::vector<std::size_t> ends;
  std::vector<bool> marked;  // the token begins with Ġ and more, or has Ċ

  void clear() { *this = ByteRun{}; }
};

// The byte at `pos` may be of a character that the start or the end of the run cuts off.
bool may_be_cut_off(std::string_view bytes, std::size_t pos) {
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  if (pos < 3 && std::ranges::all_of(bytes.substr(0, pos + 1), continues)) return true;
  const auto lead = static_cast<unsigned char>(bytes[pos]);
  return lead >= 0xC2 && lead <= 0xF4 && bytes.size() - pos <= 3 &&
         std::ranges::all_of(bytes.substr(pos + 1), continues);
}

void count_run(const ByteRun& run, Votes& votes) {
  std::size_t pos = 0;
  for (std::size_t token = 0; token < run.ends.size(); ++token) {
    bool good = run.marked[token], bad = false;
    while (pos < run.ends[token]) {
      const ByteStep step = next_step(run.bytes, pos);
      if (step.end > run.ends[token]) break;  // the token that completes it is asked
      if (step.is_character ? is_control(step.character) : !may_be_cut_off(run.bytes, pos)) bad = true;
      if (step.is_character && step.character >= 0x80) good = true;
      pos = step.end;
    }
    if (bad)
      ++votes.against;
    else if (good)
      ++votes.given;
  }
}

void count_byte_level(Asked tokens, Votes& votes) {
  ByteRun run;
  const auto finish = [&] {
    count_run(run, votes);
    run.clear();
  };
  for (const std::string& token : tokens) {
    if (is_special_token(token)) {
      finish();
      continue;
    }
    const std::optional<std::string> bytes = token_bytes(token, TokenStyle::kByteLevel);
    if (!bytes) {
      ++votes.against;
      finish();
      continue;
    }
    if (token == kByteLevelSpace) ++votes.lone;
    run.bytes += *bytes;
    run.ends.push_back(run.bytes.size());
    run.marked.push_back((token.starts_with(kByteLevelSpace) && token != kByteLevelSpace) ||
                         token.find(kByteLevelNewLine) != std::string::npos);
  }
  finish();
}

void count_marks(Asked tokens, Counts& counts) {
  bool behind_text = false;
  for (const std::string& token : tokens) {
    const bool special = is_special_token(token);
    ++(special ? counts.special : counts.others);
    if (piece_byte(token) || (token.starts_with(kPieceSpace) && token != kPieceSpace)) ++counts.sentence_piece.given;
    if (token == kPieceSpace) ++counts.sentence_piece.lone;
    if (behind_text && continues_a_word(token)) ++counts.word_piece.given;
    behind_text = !special && !token.empty();
  }
}

bool decides(const Votes& votes, const Counts& counts) {
  const bool one_is_enough = counts.special > 0 || counts.others <= 2;
  const std::size_t given = votes.given + (counts.special > 0 ? votes.lone : 0);
  return given >= (one_is_enough ? 1 : 2) && given > votes.against;
}

}  // namespace

TokenStyle detect_token_style(const std::vector<std::string>& tokens, const std::vector<std::string>& keys) {
  Counts counts;
  for (const auto* side : {&tokens, &keys}) {
    const Asked asked(side->data(), std::min(side->size(), kMostAsked));
    count_marks(asked, counts);
    if (!std::ranges::all_of(asked, is_ascii)) count_byte_level(asked, counts.byte_level);
  }
  if (decides(counts.byte_level, counts)) return TokenStyle::kByteLevel;
  if (decides(counts.sentence_piece, counts)) return TokenStyle::kSentencePiece;
  if (decides(counts.word_piece, counts)) return TokenStyle::kWordPiece;
  return TokenStyle::kPlain;
}

}  // namespace qkv
