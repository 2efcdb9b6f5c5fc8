#include "core/session/token_text.h"

#include <algorithm>

#include "core/base/ascii.h"
#include "core/base/utf8.h"
#include "core/session/token_bytes.h"

namespace qkv {
namespace {

constexpr std::string_view kSpaceMark = "·";
constexpr std::string_view kNewLineMark = "↵";
constexpr std::string_view kTabMark = "⇥";
constexpr std::string_view kGoesOn = "…";
constexpr std::string_view kHyphen = "\u2010";
constexpr std::string_view kEmptyToken = "‹›";
constexpr std::size_t kLongestCharacter = 4;  // bytes

// "E8 B2"
std::string hexadecimal_bytes(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += (text.empty() ? "" : " ") + hexadecimal(static_cast<unsigned char>(byte), 2);
  return text;
}

// Characters without a glyph that stand alone; joiners and direction marks belong to the text around them.
bool has_no_glyph(char32_t c) {
  return (c >= 0x80 && c < 0xA0) || c == 0x200B || (c >= 0x2060 && c <= 0x2064) || c == 0xFEFF;
}

// Of every character but the space; `bytes` are its own.
void append_visible(std::string& text, char32_t c, std::string_view bytes) {
  if (c > 0x20 && c < 0x7F) {
    text += bytes;
  } else if (c == U'\n') {
    text += kNewLineMark;
  } else if (c == U'\t') {
    text += kTabMark;
  } else if (c < 0x80) {
    append_utf8(text, c == 0x7F ? 0x2421 : 0x2400 + c);
  } else if (is_white_space(c) || has_no_glyph(c)) {
    text += "‹" + code_point_name(c) + "›";
  } else {
    text += bytes;
  }
}

// The bytes of a token among those of its neighbours that may share a character with it.
struct Surroundings {
  std::string bytes;
  std::size_t begin = 0, end = 0;  // of the token
};

Surroundings surroundings(const std::vector<std::string>& tokens, std::size_t index, TokenStyle style,
                          std::string own) {
  Surroundings around{std::move(own), 0, 0};
  around.end = around.bytes.size();
  const bool shares = style == TokenStyle::kByteLevel || style == TokenStyle::kSentencePiece;
  if (!shares || is_ascii(around.bytes)) return around;
  for (std::size_t i = index; i-- > 0 && around.begin < kLongestCharacter - 1;) {
    const std::optional<std::string> before = token_bytes(tokens[i], style);
    if (!before) break;
    around.bytes.insert(0, *before);
    around.begin += before->size();
    around.end += before->size();
  }
  for (std::size_t i = index + 1; i < tokens.size() && around.bytes.size() < around.end + kLongestCharacter - 1; ++i) {
    const std::optional<std::string> after = token_bytes(tokens[i], style);
    if (!after) break;
    around.bytes += *after;
  }
  return around;
}

// Cuts the bytes of a token into parts.
class PartWriter {
 public:
  explicit PartWriter(const Surroundings& around) : around_(around), text_(around.bytes) {}

  std::vector<TokenPart> parts() {
    for (std::size_t pos = 0; pos < around_.end;) {
      const ByteStep step = next_step(text_, pos);
      if (step.end > around_.begin) write(step);
      pos = step.end;
    }
    finish_loose();
    return std::move(parts_);
  }

 private:
  void write(const ByteStep& step) {
    const std::size_t begin = std::max(step.begin, around_.begin), end = std::min(step.end, around_.end);
    const std::string_view own = text_.substr(begin, end - begin);
    if (!step.is_character) {
      loose_ += own;
      return;
    }
    finish_loose();
    const std::string_view whole = text_.substr(step.begin, step.end - step.begin);
    if (own.size() == whole.size()) {
      add_character(own, step);
    } else if (step.end <= around_.end) {
      std::string shown(kGoesOn);
      append_visible(shown, step.character, whole);
      add(own, std::move(shown));
    } else {
      const std::string_view from = step.begin < around_.begin ? kGoesOn : "";
      add(own, "‹" + std::string(from) + hexadecimal_bytes(own) + std::string(kGoesOn) + "›");
    }
  }

  // A single space between words is seen as it is.
  std::string_view space(const ByteStep& step) const {
    const bool at_end = step.begin == around_.begin || step.end == around_.end;
    return at_end || text_[step.begin - 1] == ' ' || text_[step.end] == ' ' ? kSpaceMark : " ";
  }

  void add(std::string_view bytes, std::string shown) {
    parts_.push_back({std::string(bytes), std::move(shown)});
    in_text_ = false;
  }

  // Characters that stand side by side are one part.
  void add_character(std::string_view own, const ByteStep& step) {
    if (!in_text_) add({}, {});
    TokenPart& part = parts_.back();
    part.bytes += own;
    if (step.character == U' ')
      part.shown += space(step);
    else
      append_visible(part.shown, step.character, own);
    in_text_ = true;
  }

  void finish_loose() {
    if (loose_.empty()) return;
    add(loose_, "‹" + hexadecimal_bytes(loose_) + "›");
    loose_.clear();
  }

  const Surroundings& around_;
  std::string_view text_;
  std::vector<TokenPart> parts_;
  bool in_text_ = false;  // the last part is text that goes on
  std::string loose_;     // bytes that are no character
};

}  // namespace

std::vector<TokenPart> token_parts(const std::vector<std::string>& tokens, std::size_t index, TokenStyle style) {
  const std::string& token = tokens[index];
  if (style == TokenStyle::kStored) return {{token, token}};
  std::optional<std::string> bytes = token_bytes(token, style);
  // Special, or not of GPT-2's table: text among bytes.
  if (!bytes) bytes = token, style = TokenStyle::kPlain;
  const std::size_t own_size = bytes->size();
  const Surroundings around = surroundings(tokens, index, style, std::move(*bytes));
  std::vector<TokenPart> parts = PartWriter(around).parts();
  if (style == TokenStyle::kWordPiece && own_size < token.size()) {
    parts.insert(parts.begin(), TokenPart{{}, std::string(kHyphen)});
  }
  return parts;
}

std::string shown_token(const std::vector<std::string>& tokens, std::size_t index, TokenStyle style) {
  const std::string& token = tokens[index];
  if (style == TokenStyle::kStored) return token;
  if (token.empty()) return std::string(kEmptyToken);
  // Most tokens of most sessions.
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  if (std::ranges::all_of(token, is_plain)) return token;
  std::string text;
  for (const TokenPart& part : token_parts(tokens, index, style)) text += part.shown;
  return text;
}

}  // namespace qkv
