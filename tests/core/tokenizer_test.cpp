#include "core/session/tokenizer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/base/utf8.h"

using namespace qkv;

namespace {

using Tokens = std::vector<std::string>;

// The textbook table, to check against.
std::size_t common_length(const Tokens& a, const Tokens& b) {
  std::vector<std::vector<std::size_t>> table(a.size() + 1, std::vector<std::size_t>(b.size() + 1, 0));
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      table[i][j] = a[i - 1] == b[j - 1] ? table[i - 1][j - 1] + 1 : std::max(table[i - 1][j], table[i][j - 1]);
    }
  }
  return table[a.size()][b.size()];
}

// The number of kept tokens, after checking that equal tokens are matched in order.
std::size_t kept(const Tokens& before, const Tokens& after, const std::vector<int>& from) {
  REQUIRE(from.size() == after.size());
  std::size_t count = 0;
  int last = -1;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] < 0) continue;
    REQUIRE(from[i] > last);
    REQUIRE(before.at(static_cast<std::size_t>(from[i])) == after[i]);
    last = from[i];
    ++count;
  }
  return count;
}

Tokens random_tokens(std::mt19937_64& random, std::size_t size, std::size_t words) {
  Tokens tokens;
  for (std::size_t i = 0; i < size; ++i) tokens.push_back("w" + std::to_string(random() % words));
  return tokens;
}

constexpr TokenSplit kAllSplits[] = {TokenSplit::kWhiteSpace, TokenSplit::kCjk, TokenSplit::kCharacters};

}  // namespace

TEST_CASE("white space alone parts tokens by default") {
  CHECK(split_tokens("貓 追 老鼠", TokenSplit::kWhiteSpace) == Tokens{"貓", "追", "老鼠"});
  CHECK(split_tokens("  a\tb\r\n c  ", TokenSplit::kWhiteSpace) == Tokens{"a", "b", "c"});
  CHECK(split_tokens("貓　追\u00A0老鼠", TokenSplit::kWhiteSpace) == Tokens{"貓", "追", "老鼠"});
  for (const TokenSplit split : kAllSplits) {
    CHECK(split_tokens("", split).empty());
    CHECK(split_tokens(" 　\n", split).empty());
  }
}

TEST_CASE("each CJK character by itself, if so chosen") {
  CHECK(split_tokens("貓追 老鼠", TokenSplit::kCjk) == Tokens{"貓", "追", "老", "鼠"});
  CHECK(split_tokens("他10年前看了GPT-4", TokenSplit::kCjk) == Tokens{"他", "10", "年", "前", "看", "了", "GPT-4"});
  CHECK(split_tokens("がo\u304B\u3099", TokenSplit::kCjk) == Tokens{"が", "o", "\u304B\u3099"});
}

TEST_CASE("characters keep the marks that belong to them") {
  const auto characters = [](std::string_view text) { return split_tokens(text, TokenSplit::kCharacters); };
  CHECK(characters("ab c") == Tokens{"a", "b", "c"});
  CHECK(characters("e\u0301a\u0308\u0304") == Tokens{"e\u0301", "a\u0308\u0304"});
  CHECK(characters("x👨‍👩‍👧‍👦y") == Tokens{"x", "👨‍👩‍👧‍👦", "y"});
  CHECK(characters("👍🏽❤️") == Tokens{"👍🏽", "❤️"});
  CHECK(characters("🇹🇼🇯🇵🇩") == Tokens{"🇹🇼", "🇯🇵", "🇩"});
  CHECK(characters("قِطّ") == Tokens{"قِ", "طّ"});
  CHECK(characters("नमस्ते") == Tokens{"न", "म", "स्ते"});
  CHECK(characters("\u1112\u1161\u11AB\u1100\u1173\u11AF") == Tokens{"\u1112\u1161\u11AB", "\u1100\u1173\u11AF"});
  CHECK(split_tokens("قطة تطارد فأرا", TokenSplit::kWhiteSpace) == Tokens{"قطة", "تطارد", "فأرا"});
}

TEST_CASE("what can't be seen makes no token") {
  for (const TokenSplit split : kAllSplits) {
    CHECK(split_tokens("\u200D \u2060\u200E \uFEFF", split).empty());
    CHECK(split_tokens("\uFEFF貓", split) == Tokens{"貓"});
    CHECK(split_tokens("貓\u200B追", split) == Tokens{"貓", "追"});
  }
  CHECK(split_tokens("می\u200Cخواهم", TokenSplit::kWhiteSpace) == Tokens{"می\u200Cخواهم"});
}

TEST_CASE("invalid UTF-8 becomes U+FFFD") {
  CHECK(split_tokens("a\xFF z", TokenSplit::kWhiteSpace) == Tokens{"a\uFFFD", "z"});
  for (const TokenSplit split : kAllSplits) {
    for (const std::string& token : split_tokens("\xE8\xB2 \xF0\x9F\x91 ok", split)) CHECK(is_valid_utf8(token));
  }
}

TEST_CASE("joining and splitting are inverse") {
  CHECK(join_tokens({"貓", "追", "老鼠"}, TokenSplit::kWhiteSpace) == "貓 追 老鼠");
  CHECK(join_tokens({"貓", "追", "cat", "dog"}, TokenSplit::kCjk) == "貓追cat dog");
  CHECK(join_tokens({"a", "\u0301", "🇹", "🇼"}, TokenSplit::kCharacters) == "a \u0301🇹 🇼");
  const char* texts[] = {
      "貓 追 老鼠", "他10年前 abc d", "👨‍👩‍👧‍👦🇹🇼 🇯🇵e\u0301 \u0301x", "नमस्ते दुनिया",
      "",           "\u1112 \u1161"};
  for (const TokenSplit split : kAllSplits) {
    for (const char* text : texts) {
      const Tokens tokens = split_tokens(text, split);
      CHECK(split_tokens(join_tokens(tokens, split), split) == tokens);
    }
  }
}

TEST_CASE("tokens that stay keep their rows") {
  using Origins = std::vector<int>;
  CHECK(align_tokens({"a", "b", "c"}, {"a", "b", "c"}) == Origins{0, 1, 2});
  CHECK(align_tokens({"a", "b", "c"}, {"a", "x", "c"}) == Origins{0, -1, 2});
  CHECK(align_tokens({"a", "c"}, {"a", "b", "c"}) == Origins{0, -1, 1});
  CHECK(align_tokens({"a", "b", "c"}, {"c"}) == Origins{2});
  CHECK(align_tokens({}, {"a"}) == Origins{-1});
  CHECK(align_tokens({"a"}, {}).empty());
  CHECK(align_tokens({"a"}, {"a", "a"}) == Origins{0, -1});
  CHECK(align_tokens({"a", "b", "a"}, {"b", "a"}) == Origins{1, 2});
  CHECK(align_tokens({"a", "b", "c", "d"}, {"d", "a", "b", "c"}) == Origins{-1, 0, 1, 2});
}

TEST_CASE("the alignment is a longest common subsequence") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    const std::size_t words = 1 + random() % 40;
    const Tokens before = random_tokens(random, random() % 150, words);
    Tokens after = random_tokens(random, random() % 150, words);
    if (round % 2 == 0) {
      after = before;
      for (int edit = 0; edit < 10 && !after.empty(); ++edit) {
        std::swap(after[random() % after.size()], after[random() % after.size()]);
        if (edit % 3 == 0) after.erase(after.begin() + static_cast<std::ptrdiff_t>(random() % after.size()));
      }
    }
    REQUIRE(kept(before, after, align_tokens(before, after)) == common_length(before, after));
  }
}

TEST_CASE("thousands of tokens are aligned") {
  std::mt19937_64 random(11);
  std::vector<int> from;
  // Half the words in common; a few words, many repeats; a reversal.
  for (const std::size_t words : {std::size_t{4000}, std::size_t{3}}) {
    const Tokens before = random_tokens(random, 2000, words), after = random_tokens(random, 2000, words);
    from = align_tokens(before, after);
    CHECK(kept(before, after, from) == common_length(before, after));
  }
  // Above the size whose bits are all kept: rows are halved.
  for (const std::size_t words : {std::size_t{5000}, std::size_t{40}}) {
    const Tokens before = random_tokens(random, 6000, words), after = random_tokens(random, 5500, words);
    from = align_tokens(before, after);
    CHECK(kept(before, after, from) > 0);
  }
  Tokens before;
  for (int i = 0; i < 20000; ++i) before.push_back(std::to_string(i));
  Tokens after(before.rbegin(), before.rend());
  from = align_tokens(before, after);
  CHECK(kept(before, after, from) == 1);
  after = before;
  after.erase(after.begin() + 7000, after.begin() + 9000);
  after.insert(after.begin() + 100, "new");
  from = align_tokens(before, after);
  CHECK(kept(before, after, from) == 18000);
}

TEST_CASE("halving rows finds an alignment as long as the whole table does") {
  std::mt19937_64 random(13);
  const Tokens before = random_tokens(random, 4500, 700), after = random_tokens(random, 4700, 700);
  // Two rolling rows of the textbook table.
  std::vector<int> row(after.size() + 1, 0), next(after.size() + 1, 0);
  for (const std::string& token : before) {
    for (std::size_t j = 1; j <= after.size(); ++j) {
      next[j] = token == after[j - 1] ? row[j - 1] + 1 : std::max(row[j], next[j - 1]);
    }
    std::swap(row, next);
  }
  CHECK(kept(before, after, align_tokens(before, after)) == static_cast<std::size_t>(row.back()));
}

TEST_CASE("hashes and random numbers never change") {
  CHECK(stable_hash("") == 0xCBF29CE484222325u);
  CHECK(stable_hash("a") == 0xAF63DC4C8601EC8Cu);
  CHECK(stable_hash("foobar") == 0x85944171F73967E8u);
  // The first outputs of SplitMix64 from 1234567 are 6457827717110365317 and 3203168211198807973.
  const Matrix two = random_matrix(1234567, 1, 2, 1);
  CHECK(two(0, 0) == static_cast<float>((6457827717110365317u % 21 - 10.0) / 10.0));
  CHECK(two(0, 1) == static_cast<float>((3203168211198807973u % 21 - 10.0) / 10.0));
}

TEST_CASE("the same word is the same vector, in tenths of -1 to 1") {
  const RowVector cat = token_vector("貓", "q0", 6);
  CHECK(cat == token_vector("貓", "q0", 6));
  CHECK(cat != token_vector("貓", "k0", 6));
  CHECK(cat != token_vector("狗", "q0", 6));
  CHECK(cat.head(3) == token_vector("貓", "q0", 3));  // a longer vector begins with the shorter one
  CHECK(token_vector("ab", "c", 8) != token_vector("a", "bc", 8));
  for (const float value : token_vector("老鼠", "x", 500)) {
    CHECK(std::abs(value) <= 1.0f);
    CHECK(value == static_cast<float>(std::round(static_cast<double>(value) * 10) / 10.0));
  }
}

TEST_CASE("random matrices take their decimals and cover the range") {
  for (const int decimals : {0, 1, 2, 3}) {
    const Matrix matrix = random_matrix(42, 30, 30, decimals);
    const double steps = std::pow(10.0, decimals);
    for (Index i = 0; i < matrix.size(); ++i) {
      const double value = matrix.data()[i];
      CHECK(value == doctest::Approx(std::round(value * steps) / steps).epsilon(1e-7));
    }
    CHECK(matrix.maxCoeff() > 0.9f);
    CHECK(matrix.minCoeff() < -0.9f);
    CHECK(matrix.maxCoeff() <= 1.0f);
    CHECK(std::abs(matrix.mean()) < 0.1f);
  }
  CHECK(random_matrix(1, 2, 3) != random_matrix(2, 2, 3));
}
