// How tokens are shown: the pieces of a model's tokenizer as people read them. What is stored never changes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// How the tokens of a session spell text.
enum class TokenStyle {
  kStored,         // shown as stored
  kPlain,          // text
  kByteLevel,      // GPT-2, RoBERTa, Llama 3: each character is a byte of GPT-2's table, Ġ a space, Ċ a new line
  kSentencePiece,  // Llama 2, T5: ▁ is a space, <0x0A> a byte
  kWordPiece,      // BERT: ## goes on with the word before
};

// The style that the tokens speak for, from all of them together (`keys` empty where the tokens are the keys too);
// kPlain where too few do. A token speaks for
//   byte-level     when it begins with Ġ and more, has Ċ, or completes a character beyond ASCII; each token speaks
//                  against it that the table does not spell, or whose bytes are a control character or part of no
//                  character, unless the list begins or ends inside that character;
//   SentencePiece  when it begins with ▁ and more, or is a byte;
//   WordPiece      when it is ## and a letter, digit or character beyond ASCII, behind a token that is not special.
// Two must speak for a style, so that one mark typed by hand changes nothing. One is enough beside special tokens, or
// in a session of no more than two others; a ▁ or Ġ by itself counts beside special tokens alone. Byte-level needs
// more for it than against it.
TokenStyle detect_token_style(const std::vector<std::string>& tokens, const std::vector<std::string>& keys = {});

// [CLS], [unused3], <s>, </s>, <pad>, <start_of_turn>, <|endoftext|>, <｜end▁of▁sentence｜>: in brackets, capitals;
// in < >, between bars, the usual names or a name with _.
bool is_special_token(std::string_view token);

// A part of a token. The bytes of its parts, in order, are what the token stands for, none lost and none added.
struct TokenPart {
  std::string bytes;
  std::string shown;
};

// The parts of token `index`. White space and control characters are visible: a space at either end or beside another
// is ·, a new line ↵, a tab ⇥, others their pictures or code points. Bytes that are no character are hexadecimal,
// ‹E8 B2›. A character cut into several tokens stands in the last of them, as …貓; those before show their bytes and
// that they go on, ‹E8 B2…›. A WordPiece that goes on begins with a hyphen, ‐ing.
std::vector<TokenPart> token_parts(const std::vector<std::string>& tokens, std::size_t index, TokenStyle style);

// What is drawn for token `index`: its parts joined; special tokens as stored; an empty token as ‹›.
std::string shown_token(const std::vector<std::string>& tokens, std::size_t index, TokenStyle style);

}  // namespace qkv
