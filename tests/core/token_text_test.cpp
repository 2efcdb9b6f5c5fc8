// Tokens as people read them: GPT-2's bytes, SentencePiece, WordPiece, white space, special tokens.
#include "core/session/token_text.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "core/base/utf8.h"
#include "core/session/session.h"
#include "core/session/session_file.h"
#include "core/session/token_bytes.h"

using namespace qkv;

namespace {

using Texts = std::vector<std::string>;
using enum TokenStyle;

// GPT-2's bytes_to_unicode(): printable bytes are themselves, the others follow from U+0100 on.
std::map<unsigned, char32_t> gpt2_table() {
  std::map<unsigned, char32_t> table;
  const auto itself = [](unsigned b) {
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
  };
  char32_t next = 0x100;
  for (unsigned b = 0; b < 256; ++b) table[b] = itself(b) ? b : next++;
  return table;
}

std::string as_gpt2(std::string_view bytes) {
  static const std::map<unsigned, char32_t> kTable = gpt2_table();
  std::string text;
  for (const char byte : bytes) append_utf8(text, kTable.at(static_cast<unsigned char>(byte)));
  return text;
}

std::string hex(unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return {kDigits[byte / 16], kDigits[byte % 16]};
}

Texts shown(const Texts& tokens, TokenStyle style) {
  Texts texts;
  for (std::size_t i = 0; i < tokens.size(); ++i) texts.push_back(shown_token(tokens, i, style));
  return texts;
}

// As a session shows them.
Texts shown(const Texts& tokens) { return shown(tokens, detect_token_style(tokens)); }

}  // namespace

TEST_CASE("every byte has its character in GPT-2's table, and no other character is a byte") {
  const std::map<unsigned, char32_t> table = gpt2_table();
  std::map<char32_t, unsigned> back;
  for (const auto& [number, character] : table) {
    const unsigned byte = number;
    back[character] = byte;
    CAPTURE(byte);
    CHECK(byte_level_byte(character) == byte);
    std::string text;
    append_utf8(text, character);
    CHECK(token_bytes(text, kByteLevel) == std::string{static_cast<char>(byte)});
  }
  REQUIRE(back.size() == 256);
  for (char32_t c = 0; c < 0x3000; ++c) {
    if (!back.contains(c)) CHECK_FALSE(byte_level_byte(c).has_value());
  }
}

TEST_CASE("GPT-2: words, new lines, characters of several pieces") {
  CHECK(as_gpt2(" 貓") == "Ġè²ĵ");
  CHECK(shown({"Hello", "Ġworld"}) == Texts{"Hello", "·world"});
  CHECK(shown({"Ġè²ĵ", "ĊĊ", "ĠĠĠ", "ĉ"}) == Texts{"·貓", "↵↵", "···", "⇥"});
  CHECK(shown({"Ġthe", "Ġè²", "ĵ"}) == Texts{"·the", "·‹E8 B2…›", "…貓"});
  CHECK(shown({"ðŁĺ", "Ģ", "Ġyes"}) == Texts{"‹F0 9F 98…›", "…😀", "·yes"});
  CHECK(shown({"Ġ", "ð", "Ł", "ĺ", "Ģ!"}, kByteLevel) == Texts{"·", "‹F0…›", "‹…9F…›", "‹…98…›", "…😀!"});
  // One piece ends a character and begins the next.
  CHECK(shown({"è²", "ĵè", "²ĵ"}, kByteLevel) == Texts{"‹E8 B2…›", "…貓‹E8…›", "…貓"});
  CHECK(shown({"cafÃ©", "Ġna", "Ã¯ve"}) == Texts{"café", "·na", "ïve"});
}

TEST_CASE("bytes that are no character are hexadecimal") {
  CHECK(shown({"è²"}, kByteLevel) == Texts{"‹E8 B2›"});
  CHECK(shown({"è²", "x"}, kByteLevel) == Texts{"‹E8 B2›", "x"});
  CHECK(shown({"ÿa", "ĵ"}, kByteLevel) == Texts{"‹FF›a", "‹93›"});
  // A special token, or one that is not made of bytes, parts characters.
  CHECK(shown({"è²", "<|endoftext|>", "ĵ"}, kByteLevel) == Texts{"‹E8 B2›", "<|endoftext|>", "‹93›"});
  CHECK(shown({"è²", "貓", "ĵ"}, kByteLevel) == Texts{"‹E8 B2›", "貓", "‹93›"});
  CHECK(shown({"ok", "\xE8\xB2"}, kPlain) == Texts{"ok", "‹E8 B2›"});
  // Overlong, a surrogate, above U+10FFFF.
  CHECK(shown({as_gpt2("\xC0\x80"), as_gpt2("\xED\xA0\x80"), as_gpt2("\xF4\x90\x80\x80")}, kByteLevel) ==
        Texts{"‹C0 80›", "‹ED A0 80›", "‹F4 90 80 80›"});
  // U+FFFD as three bytes is a character.
  CHECK(shown({as_gpt2("\uFFFD")}, kByteLevel) == Texts{"\uFFFD"});
}

TEST_CASE("SentencePiece: ▁ is a space, byte tokens are bytes") {
  CHECK(shown({"▁the", "▁cat", "s"}) == Texts{"·the", "·cat", "s"});
  CHECK(shown({"<s>", "▁", "我", "们", "<0xE8>", "<0xB2>", "<0x93>", "<0x0A>", "</s>"}) ==
        Texts{"<s>", "·", "我", "们", "‹E8…›", "‹…B2…›", "…貓", "↵", "</s>"});
  CHECK(shown({"▁▁▁▁", "▁x", "▁=", "▁1"}) == Texts{"····", "·x", "·=", "·1"});
  CHECK(shown({"▁a", "<0xE8>", "▁b"}) == Texts{"·a", "‹E8›", "·b"});
  // A byte token that is ASCII is the character.
  CHECK(shown({"<0x41>", "<0x00>", "<0x7f>"}, kSentencePiece) == Texts{"A", "␀", "␡"});
  CHECK(shown({"<0xG1>", "<0x1>", "<0x123>"}, kSentencePiece) == Texts{"<0xG1>", "<0x1>", "<0x123>"});
}

TEST_CASE("WordPiece: ## goes on with a word") {
  CHECK(shown({"[CLS]", "play", "##ing", "em", "##bed", "##ding", "[SEP]"}) ==
        Texts{"[CLS]", "play", "\u2010ing", "em", "\u2010bed", "\u2010ding", "[SEP]"});
  CHECK(shown({"play", "##ing"}) == Texts{"play", "\u2010ing"});
  CHECK(shown({"##"}, kWordPiece) == Texts{"##"});
  const std::vector<TokenPart> parts = token_parts({"play", "##ing"}, 1, kWordPiece);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].bytes.empty());
  CHECK(parts[1].bytes == "ing");
}

TEST_CASE("white space and control characters are visible in every style") {
  CHECK(shown({" the", "New York", "a  b", "end ", " "}, kPlain) == Texts{"·the", "New York", "a··b", "end·", "·"});
  CHECK(shown({"\n", "\t", "\r\n", "\x1b[0m", "\x7f", std::string("\0", 1)}, kPlain) ==
        Texts{"↵", "⇥", "␍↵", "␛[0m", "␡", "␀"});
  CHECK(shown({"a\u00A0b", "\u3000", "\u200B", "\uFEFF", "\u0085", "\u2028"}, kPlain) ==
        Texts{"a‹U+00A0›b", "‹U+3000›", "‹U+200B›", "‹U+FEFF›", "‹U+0085›", "‹U+2028›"});
  // Joiners and direction marks belong to the text around them.
  CHECK(shown({"👩‍👩‍👧", "नमस्ते", "می\u200Cخواهم", "貓"}, kPlain) ==
        Texts{"👩‍👩‍👧", "नमस्ते", "می\u200Cخواهم", "貓"});
  CHECK(shown({""}, kPlain) == Texts{"‹›"});
}

TEST_CASE("stored is stored") {
  const Texts tokens = {"Ġè²", "ĵ", "▁x", "##y", "\n", "<0x0A>", ""};
  CHECK(shown(tokens, kStored) == tokens);
}

TEST_CASE("special tokens are known by their form") {
  for (const char* token : {"[CLS]",
                            "[SEP]",
                            "[PAD]",
                            "[MASK]",
                            "[UNK]",
                            "[unused17]",
                            "[INST]",
                            "[/INST]",
                            "[gMASK]",
                            "<s>",
                            "</s>",
                            "<pad>",
                            "<unk>",
                            "<mask>",
                            "<bos>",
                            "<eos>",
                            "<|endoftext|>",
                            "<|im_start|>",
                            "<|begin_of_text|>",
                            "<start_of_turn>",
                            "<extra_id_0>",
                            "<unused5>",
                            "<｜end▁of▁sentence｜>"}) {
    CAPTURE(token);
    CHECK(is_special_token(token));
    CHECK(shown({token}, kByteLevel) == Texts{token});
    CHECK(shown({token}, kSentencePiece) == Texts{token});
  }
  for (const char* token : {"", "[", "[]", "[1]", "[A]", "[note]", "<", "<>", "<div>", "<0x0A>", "a<s>", "<s", "<||>",
                            "<| |>", "CLS", "貓", "[貓]"}) {
    CAPTURE(token);
    CHECK_FALSE(is_special_token(token));
  }
}

TEST_CASE("the style is what all tokens together speak for") {
  struct Case {
    Texts tokens;
    TokenStyle style;
  };
  const std::vector<Case> cases = {
      {{"貓", "追", "老鼠"}, kPlain},
      {{"the", "cat"}, kPlain},
      {{}, kPlain},
      // One mark typed by hand.
      {{"the", "▁cat", "sat"}, kPlain},
      {{"▁", "貓"}, kPlain},
      {{"the", "Ġcat", "sat"}, kPlain},
      {{"##", "Heading", "##", "Another"}, kPlain},
      {{"###", "Heading"}, kPlain},
      {{"play", "the", "##ing"}, kPlain},
      {{"##ing"}, kPlain},
      // One is enough beside special tokens, and in a session of two.
      {{"<s>", "▁Hi", "!", "!", "</s>"}, kSentencePiece},
      {{"<s>", "▁", "貓", "追"}, kSentencePiece},
      {{"[CLS]", "un", "##able", "now", "[SEP]"}, kWordPiece},
      {{"Hello", "Ġworld"}, kByteLevel},
      {{"<s>", "Hi", "Ġ", "there", "</s>"}, kByteLevel},
      // Without one space: bytes alone.
      {{"è²", "ĵ", "è¿", "½", "èĢ", "ģ", "é¼", "ł"}, kByteLevel},
      {{"def", "Ġf", "():", "Ċ", "ĠĠĠ", "Ġpass"}, kByteLevel},
      // A cut at either end, or a chip that was taken away.
      {{"²ĵ", "Ġthe", "Ġcat", "Ġè²"}, kByteLevel},
      {{"<|im_start|>", "user", "Ċ", "Hi", "<|im_end|>"}, kByteLevel},
      // Letters that happen to be in GPT-2's table.
      {{"Ça", "va", "déjà", "été"}, kPlain},
      {{"Příliš", "žluťoučký", "kůň", "Čeština"}, kPlain},
      {{"Straße", "für", "Größe"}, kPlain},
      {{"Łódź", "ąę", "Ćma"}, kPlain},
      {{"f'", "Ġunju", "ħarġu", "Ġorġ"}, kPlain},
      {{"[CLS]", "Ġorġ", "jiekol", "ħobż", "[SEP]"}, kPlain},
  };
  for (const Case& each : cases) {
    CAPTURE(join_tokens(each.tokens, TokenSplit::kWhiteSpace));
    CHECK(static_cast<int>(detect_token_style(each.tokens)) == static_cast<int>(each.style));
  }
  // The query that a model is about to read speaks with its keys.
  CHECK(detect_token_style({"mat"}, {"The", "Ġcat", "Ġsat"}) == kByteLevel);
  CHECK(detect_token_style({"老鼠"}, {"▁the", "▁cat"}) == kSentencePiece);
  // Long texts speak by their beginning.
  Texts many(5000, "Ġword");
  CHECK(detect_token_style(many) == kByteLevel);
  std::fill_n(many.begin(), 4096, "word");
  CHECK(detect_token_style(many) == kPlain);
  many[4094] = many[4095] = "Ġword";
  CHECK(detect_token_style(many) == kByteLevel);
}

TEST_CASE("no byte is lost or added, however text is cut into pieces") {
  std::mt19937 random(20240607);
  const auto below = [&](std::size_t n) { return std::size_t(random() % n); };
  // Bytes that never begin a character, so that which characters there are is known.
  const std::string strays = "\x80\x93\xBF\xC0\xC1\xF8\xFF";
  const Texts characters = {"a", "Z", "é", "ß", "貓", "한", "€", "😀", "𠮷"};
  for (int round = 0; round < 400; ++round) {
    std::string bytes;
    struct Item {
      std::size_t begin, end;
      bool is_character;
    };
    std::vector<Item> items;
    for (std::size_t i = 0, count = 1 + below(12); i < count; ++i) {
      const bool stray = below(4) == 0;
      const std::size_t begin = bytes.size();
      bytes += stray ? std::string(1, strays[below(strays.size())]) : characters[below(characters.size())];
      items.push_back({begin, bytes.size(), !stray});
    }
    for (const TokenStyle style : {kByteLevel, kSentencePiece}) {
      // SentencePiece cuts characters into single bytes only.
      std::vector<std::pair<std::size_t, std::size_t>> pieces;
      Texts tokens;
      for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t end = style == kByteLevel ? std::min(bytes.size(), at + 1 + below(4)) : at + 1;
        const std::string piece = bytes.substr(at, end - at);
        tokens.push_back(style == kByteLevel ? as_gpt2(piece)
                                             : "<0x" + hex(static_cast<unsigned char>(piece[0])) + ">");
        pieces.emplace_back(at, end);
        at = end;
      }
      std::string decoded;
      for (std::size_t t = 0; t < tokens.size(); ++t) {
        const auto [begin, end] = pieces[t];
        std::string own, expected;
        bool loose = false;
        const auto close = [&] { expected += std::exchange(loose, false) ? "›" : ""; };
        for (const Item& item : items) {
          if (item.end <= begin || item.begin >= end) continue;
          const std::size_t from = std::max(begin, item.begin), to = std::min(end, item.end);
          std::string in_hex;
          for (std::size_t b = from; b < to; ++b)
            in_hex += (b > from ? " " : "") + hex(static_cast<unsigned char>(bytes[b]));
          if (!item.is_character) {
            expected += (loose ? " " : "‹") + in_hex;
            loose = true;
            continue;
          }
          close();
          const std::string before = item.begin < begin ? "…" : "";
          if (item.end <= end)
            expected += before + bytes.substr(item.begin, item.end - item.begin);
          else
            expected += "‹" + before + in_hex + "…›";
        }
        close();
        for (const TokenPart& part : token_parts(tokens, t, style)) own += part.bytes;
        CAPTURE(join_tokens(tokens, TokenSplit::kWhiteSpace));
        CHECK(own == bytes.substr(begin, end - begin));
        CHECK(shown_token(tokens, t, style) == expected);
        decoded += own;
      }
      CHECK(decoded == bytes);
    }
  }
}

TEST_CASE("any tokens can be shown in any style") {
  std::mt19937 random(7);
  const Texts pieces = {"Ġ", "Ċ", "▁",  "##", "è",    "²",    "ĵ",    "<0xE8>", "<0xB2>", "<0x93>", "[CLS]", "<s>",
                        "a", " ", "\n", "貓", "\xE8", "\xB2", "\x93", "\xFF",   "",       "<|",     "|>"};
  for (int round = 0; round < 2000; ++round) {
    Texts tokens(1 + random() % 5);
    for (std::string& token : tokens)
      for (unsigned i = 0, n = random() % 4; i < n; ++i) token += pieces[random() % pieces.size()];
    CAPTURE(join_tokens(tokens, TokenSplit::kWhiteSpace));
    const TokenStyle detected = detect_token_style(tokens);
    CHECK(detected != kStored);
    for (const TokenStyle style : {kStored, kPlain, kByteLevel, kSentencePiece, kWordPiece}) {
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        std::string bytes;
        for (const TokenPart& part : token_parts(tokens, i, style)) bytes += part.bytes;
        const std::optional<std::string> meant = token_bytes(tokens[i], style);
        CHECK(bytes == meant.value_or(tokens[i]));
        if (style != kStored) CHECK(is_valid_utf8(shown_token(tokens, i, style)));
      }
    }
  }
}

TEST_CASE("axes show tokens as the view asks for; what is stored stays") {
  Session session = worked_example();
  session.tokens = {"<s>", "Ġè²", "ĵ"};
  CHECK(axis_labels(session, Axis::kQueries, 4) == Texts{"<s>", "·‹E8 B2…›", "…貓", "4"});
  CHECK(axis_labels(session, Axis::kDk, 2) == Texts{"1", "2"});
  const AxisNames names(session, Axis::kKeys, 3);
  CHECK(names.is_special(0));
  CHECK_FALSE(names.is_special(1));
  CHECK_FALSE(AxisNames(session, Axis::kDk, 3).is_special(0));
  CHECK(session_to_json(session).find("raw_tokens") == std::string::npos);
  session.view.raw_tokens = true;
  CHECK(axis_labels(session, Axis::kKeys, 3) == session.tokens);

  const std::string json = session_to_json(session);
  const Result<Session> read = parse_session(json, {});
  REQUIRE(read);
  CHECK(read.value().view.raw_tokens);
  CHECK(read.value().tokens == session.tokens);
  std::string wrong = json;
  wrong.replace(wrong.find("\"raw_tokens\": true"), 18, "\"raw_tokens\": 1");
  const Result<Session> refused = parse_session(wrong, {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("view.raw_tokens") != std::string::npos);
}
