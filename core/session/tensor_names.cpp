#include "core/session/tensor_names.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace qkv {

namespace {

// What a word stands for.
enum class Thing { kQ, kK, kV, kQkv, kOut, kAttn, kScores, kX, kTokens, kKeyTokens, kScoreBias, kResult };

// What a tensor of that word holds.
enum class Use {
  kValues,      // numbers of tokens, never weights
  kPlain,       // numbers of tokens, but weights with ".weight" behind it
  kProjection,  // either, and weights with ".weight" behind it
  kWeights,     // weights, with or without it
  kBias,        // the bias of a projection
  kSuffixed,    // nothing without ".weight" or ".bias" behind it
  kAlone,       // only where nothing stands before it
};

struct Word {
  std::string_view text;
  Thing thing;
  Use use;
};

constexpr std::array kWords = {
    Word{"q", Thing::kQ, Use::kPlain},
    Word{"query", Thing::kQ, Use::kPlain},
    Word{"queries", Thing::kQ, Use::kPlain},
    Word{"q_proj", Thing::kQ, Use::kProjection},
    Word{"query_proj", Thing::kQ, Use::kProjection},
    Word{"q_lin", Thing::kQ, Use::kProjection},
    Word{"to_q", Thing::kQ, Use::kProjection},
    Word{"attn_q", Thing::kQ, Use::kProjection},
    Word{"wq", Thing::kQ, Use::kWeights},
    Word{"w_q", Thing::kQ, Use::kWeights},
    Word{"bq", Thing::kQ, Use::kBias},
    Word{"b_q", Thing::kQ, Use::kBias},
    Word{"k", Thing::kK, Use::kPlain},
    Word{"key", Thing::kK, Use::kPlain},
    Word{"keys", Thing::kK, Use::kPlain},
    Word{"k_proj", Thing::kK, Use::kProjection},
    Word{"key_proj", Thing::kK, Use::kProjection},
    Word{"k_lin", Thing::kK, Use::kProjection},
    Word{"to_k", Thing::kK, Use::kProjection},
    Word{"attn_k", Thing::kK, Use::kProjection},
    Word{"wk", Thing::kK, Use::kWeights},
    Word{"w_k", Thing::kK, Use::kWeights},
    Word{"bk", Thing::kK, Use::kBias},
    Word{"b_k", Thing::kK, Use::kBias},
    Word{"v", Thing::kV, Use::kPlain},
    Word{"value", Thing::kV, Use::kPlain},
    Word{"values", Thing::kV, Use::kPlain},
    Word{"v_proj", Thing::kV, Use::kProjection},
    Word{"value_proj", Thing::kV, Use::kProjection},
    Word{"v_lin", Thing::kV, Use::kProjection},
    Word{"to_v", Thing::kV, Use::kProjection},
    Word{"attn_v", Thing::kV, Use::kProjection},
    Word{"wv", Thing::kV, Use::kWeights},
    Word{"w_v", Thing::kV, Use::kWeights},
    Word{"bv", Thing::kV, Use::kBias},
    Word{"b_v", Thing::kV, Use::kBias},
    Word{"qkv", Thing::kQkv, Use::kPlain},
    Word{"qkv_proj", Thing::kQkv, Use::kProjection},
    Word{"to_qkv", Thing::kQkv, Use::kProjection},
    Word{"attn_qkv", Thing::kQkv, Use::kProjection},
    Word{"query_key_value", Thing::kQkv, Use::kProjection},
    Word{"in_proj", Thing::kQkv, Use::kProjection},
    Word{"c_attn", Thing::kQkv, Use::kProjection},
    Word{"wqkv", Thing::kQkv, Use::kWeights},
    Word{"w_qkv", Thing::kQkv, Use::kWeights},
    Word{"bqkv", Thing::kQkv, Use::kBias},
    Word{"b_qkv", Thing::kQkv, Use::kBias},
    Word{"wo", Thing::kOut, Use::kWeights},
    Word{"w_o", Thing::kOut, Use::kWeights},
    Word{"bo", Thing::kOut, Use::kBias},
    Word{"b_o", Thing::kOut, Use::kBias},
    Word{"o", Thing::kOut, Use::kSuffixed},
    Word{"o_proj", Thing::kOut, Use::kSuffixed},
    Word{"out_proj", Thing::kOut, Use::kSuffixed},
    Word{"out_lin", Thing::kOut, Use::kSuffixed},
    Word{"to_out", Thing::kOut, Use::kSuffixed},
    Word{"c_proj", Thing::kOut, Use::kSuffixed},
    Word{"proj", Thing::kOut, Use::kSuffixed},
    Word{"dense", Thing::kOut, Use::kSuffixed},
    Word{"out", Thing::kOut, Use::kSuffixed},
    Word{"attn_output", Thing::kOut, Use::kSuffixed},
    Word{"out", Thing::kResult, Use::kValues},
    Word{"output", Thing::kResult, Use::kValues},
    Word{"attn_out", Thing::kResult, Use::kValues},
    Word{"attn_output", Thing::kResult, Use::kValues},
    Word{"attention_output", Thing::kResult, Use::kValues},
    Word{"attn", Thing::kAttn, Use::kValues},
    Word{"attns", Thing::kAttn, Use::kValues},
    Word{"attention", Thing::kAttn, Use::kValues},
    Word{"attentions", Thing::kAttn, Use::kValues},
    Word{"attn_weights", Thing::kAttn, Use::kValues},
    Word{"attention_weights", Thing::kAttn, Use::kValues},
    Word{"attn_probs", Thing::kAttn, Use::kValues},
    Word{"attention_probs", Thing::kAttn, Use::kValues},
    Word{"pattern", Thing::kAttn, Use::kValues},
    Word{"weights", Thing::kAttn, Use::kAlone},
    Word{"a", Thing::kAttn, Use::kAlone},
    Word{"scores", Thing::kScores, Use::kValues},
    Word{"attn_scores", Thing::kScores, Use::kValues},
    Word{"attention_scores", Thing::kScores, Use::kValues},
    Word{"x", Thing::kX, Use::kValues},
    Word{"hidden_states", Thing::kX, Use::kValues},
    Word{"hidden_state", Thing::kX, Use::kValues},
    Word{"embeddings", Thing::kX, Use::kValues},
    Word{"embedding", Thing::kX, Use::kValues},
    Word{"inputs", Thing::kX, Use::kValues},
    Word{"input", Thing::kX, Use::kValues},
    Word{"inputs_embeds", Thing::kX, Use::kValues},
    Word{"tokens", Thing::kTokens, Use::kValues},
    Word{"words", Thing::kTokens, Use::kValues},
    Word{"input_tokens", Thing::kTokens, Use::kValues},
    Word{"query_tokens", Thing::kTokens, Use::kValues},
    Word{"tokens_utf8", Thing::kTokens, Use::kValues},
    Word{"str_tokens", Thing::kTokens, Use::kValues},
    Word{"key_tokens", Thing::kKeyTokens, Use::kValues},
    Word{"key_words", Thing::kKeyTokens, Use::kValues},
    Word{"bias", Thing::kScoreBias, Use::kAlone},
    Word{"attn_bias", Thing::kScoreBias, Use::kAlone},
    Word{"attention_bias", Thing::kScoreBias, Use::kAlone},
    Word{"position_bias", Thing::kScoreBias, Use::kAlone},
};

bool is_word(std::string_view text) { return std::ranges::find(kWords, text, &Word::text) != kWords.end(); }

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 7 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

int number_in(std::string_view text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// The letters before the digits at the end of "layers_12", and those digits; none where it ends otherwise.
struct Numbered {
  std::string_view word, digits;
};
Numbered split_number(std::string_view text) {
  const std::size_t end = text.find_last_not_of("0123456789") + 1;  // npos + 1 = 0
  std::string_view word = text.substr(0, end);
  if (word.ends_with('_') || word.ends_with('-')) word.remove_suffix(1);
  return {word, is_number(text.substr(end)) ? text.substr(end) : std::string_view()};
}

// "l", "layer", "encoder_layers", "h", "blk", …
bool counts_layers(std::string_view word) {
  constexpr std::array<std::string_view, 5> kEndings = {"layer", "layers", "block", "blocks", "blk"};
  return word == "l" || word == "h" ||
         std::ranges::any_of(kEndings, [&](std::string_view ending) { return word.ends_with(ending); });
}

// A name taken apart.
struct Parts {
  std::vector<std::string> path;  // what stands before the word, with "*" for the layer's number
  std::string word;
  std::string suffix;  // "weight", "kernel" or "bias"
  std::optional<int> layer;
  bool is_hook = false;
  bool is_numbered = false;  // a number stood behind the word
};

std::vector<std::string> split(std::string_view name) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = name.find_first_of("./\\:|");
    if (end != 0) parts.emplace_back(name.substr(0, end));
    if (end == std::string_view::npos) return parts;
    name.remove_prefix(end + 1);
  }
}

void take_suffix(std::vector<std::string>& parts, Parts& result) {
  for (const std::string_view suffix : {"weight", "kernel", "bias"}) {
    std::string& last = parts.back();
    if (last == suffix && parts.size() > 1) {
      result.suffix = suffix;
      parts.pop_back();
      return;
    }
    const std::string ending = "_" + std::string(suffix);
    if (!last.ends_with(ending) || is_word(last)) continue;
    if (!is_word(last.substr(0, last.size() - ending.size()))) continue;
    result.suffix = suffix;
    last.resize(last.size() - ending.size());
    return;
  }
}

// "layer_0_q" is the word q of layer 0, and so is "q_0"; "*" goes where the number was.
void take_numbers_of_word(Parts& result) {
  std::string& word = result.word;
  if (is_word(word)) return;
  if (word.starts_with("hook_")) {
    result.is_hook = true;
    word.erase(0, 5);
  }
  for (std::size_t at = word.find('_'); at != std::string::npos && !is_word(word); at = word.find('_', at + 1)) {
    const Numbered front = split_number(std::string_view(word).substr(0, at));
    if (front.digits.empty() || !counts_layers(front.word)) continue;
    result.layer = number_in(front.digits);
    result.path.push_back(std::string(front.word) + "*");
    word.erase(0, at + 1);
    at = 0;
  }
  const Numbered back = split_number(word);
  if (!back.digits.empty() && is_word(back.word)) {
    result.layer = number_in(back.digits);
    result.is_numbered = true;
    word.resize(back.word.size());
  }
}

// The first number of the path is the layer's; T5 counts the parts of a layer after it.
void take_layer_of_path(Parts& result) {
  for (std::string& part : result.path) {
    if (result.layer) return;
    const Numbered numbered = split_number(part);
    if (numbered.digits.empty()) continue;
    if (!numbered.word.empty() && !counts_layers(numbered.word)) continue;
    result.layer = number_in(numbered.digits);
    part.replace(part.size() - numbered.digits.size(), std::string::npos, "*");
  }
}

Parts take_apart(std::string_view name) {
  std::vector<std::string> parts = split(lower(name));
  Parts result;
  if (parts.empty()) return result;
  if (parts.size() > 1 && parts.back() == "0" && name.ends_with(":0")) parts.pop_back();  // TensorFlow's outputs
  take_suffix(parts, result);
  if (parts.size() > 1 && is_number(parts.back()) && is_word(parts[parts.size() - 2])) {
    // "attentions.3" is of layer 3; "to_out.0" is torch's first module of a list.
    if (result.suffix.empty()) result.layer = number_in(parts.back());
    parts.pop_back();
  }
  result.word = parts.back();
  parts.pop_back();
  result.path = std::move(parts);
  take_numbers_of_word(result);
  take_layer_of_path(result);
  return result;
}

// Whether an output projection of this word is attention's: a feed-forward part has some of the same names.
bool is_of_attention(const Parts& parts) {
  constexpr std::array<std::string_view, 5> kShared = {"c_proj", "proj", "dense", "out", "o"};
  constexpr std::array<std::string_view, 5> kFeedForward = {"mlp", "ffn", "feed_forward", "dense", "intermediate"};
  const auto within = [&](std::string_view text) {
    return std::ranges::any_of(parts.path, [&](const std::string& part) { return part.find(text) != part.npos; });
  };
  if (std::ranges::any_of(kFeedForward, within)) return false;
  const bool is_shared = std::ranges::find(kShared, std::string_view(parts.word)) != kShared.end();
  return !is_shared || within("att") || within("mha");
}

// What the word holds, given what stands behind it; nullopt where nothing fits.
enum class Holds { kValues, kWeights, kBias };
std::optional<Holds> holds(const Word& word, const Parts& parts) {
  const bool is_weights = parts.suffix == "weight" || parts.suffix == "kernel", is_bias = parts.suffix == "bias";
  switch (word.use) {
    case Use::kAlone: {
      const bool is_alone = parts.path.empty() || (parts.path.size() == 1 && parts.layer);
      return parts.suffix.empty() && is_alone && !parts.is_numbered ? std::optional(Holds::kValues) : std::nullopt;
    }
    case Use::kValues:
      return parts.suffix.empty() ? std::optional(Holds::kValues) : std::nullopt;
    case Use::kPlain:
    case Use::kProjection:
      return is_weights ? Holds::kWeights : is_bias ? Holds::kBias : Holds::kValues;
    case Use::kWeights:
      if (word.thing == Thing::kOut && !is_of_attention(parts)) return std::nullopt;
      return is_bias ? Holds::kBias : Holds::kWeights;
    case Use::kBias:
      return parts.suffix.empty() ? std::optional(Holds::kBias) : std::nullopt;
    case Use::kSuffixed:
      if (!is_of_attention(parts)) return std::nullopt;
      return is_weights ? std::optional(Holds::kWeights) : is_bias ? std::optional(Holds::kBias) : std::nullopt;
  }
  return std::nullopt;
}

Role role_of(Thing thing, Holds what) {
  const auto of_three = [&](Role values, Role weights, Role bias) {
    return what == Holds::kValues ? values : what == Holds::kWeights ? weights : bias;
  };
  switch (thing) {
    case Thing::kQ:
    case Thing::kQkv:
      return of_three(Role::kQ, Role::kWq, Role::kBq);
    case Thing::kK:
      return of_three(Role::kK, Role::kWk, Role::kBk);
    case Thing::kV:
      return of_three(Role::kV, Role::kWv, Role::kBv);
    case Thing::kOut:
      return what == Holds::kBias ? Role::kBo : Role::kWo;
    case Thing::kAttn:
      return Role::kAttn;
    case Thing::kScores:
      return Role::kScores;
    case Thing::kX:
      return Role::kX;
    case Thing::kTokens:
      return Role::kTokens;
    case Thing::kKeyTokens:
      return Role::kKeyTokens;
    case Thing::kScoreBias:
      return Role::kBias;
    case Thing::kResult:
      return Role::kOut;
  }
  return Role::kOut;
}

WeightOrder order_of(const Word& word, const Parts& parts) {
  if (word.text == "c_attn" || word.text == "c_proj" || parts.suffix == "kernel") return WeightOrder::kInOut;
  if (parts.suffix == "weight") return WeightOrder::kOutIn;
  return word.use == Use::kWeights ? WeightOrder::kInOut : WeightOrder::kUnknown;
}

// "q", and "l0.q" of a layer.
bool is_own_key(std::string_view name, const Parts& parts, std::string_view key) {
  if (name == key) return true;
  const bool is_in_layer = parts.path.size() == 1 && parts.path.front() == "l*" && parts.suffix.empty();
  return is_in_layer && name.ends_with("." + std::string(key));
}

// "attn.rows" and "attn.columns": what a table says of the matrix of that name.
std::optional<NameReading> read_header_name(std::string_view name) {
  const bool is_rows = name.ends_with(".rows"), is_columns = name.ends_with(".columns");
  if (!is_rows && !is_columns) return std::nullopt;
  const std::optional<Role> of = role_from_key(name.substr(0, name.rfind('.')));
  NameReading reading;
  if (is_rows && (of == Role::kQ || of == Role::kX || of == Role::kAttn)) {
    reading.role = Role::kTokens;
  } else if ((is_rows && of == Role::kK) || (is_columns && of == Role::kAttn)) {
    reading.role = Role::kKeyTokens;
  } else {
    return std::nullopt;
  }
  return reading;
}

}  // namespace

std::vector<NameReading> read_name(std::string_view name) {
  if (const std::optional<NameReading> header = read_header_name(name)) return {*header};
  std::vector<NameReading> readings;
  const Parts parts = take_apart(name);
  for (const Word& word : kWords) {
    if (word.text != parts.word) continue;
    const std::optional<Holds> what = holds(word, parts);
    if (!what) continue;
    NameReading reading;
    reading.role = role_of(word.thing, *what);
    reading.fused = word.thing == Thing::kQkv;
    reading.is_weak = word.thing == Thing::kAttn && word.use == Use::kAlone;
    reading.is_own_key = is_own_key(name, parts, role_key(reading.role));
    reading.may_interleave = word.text == "query_key_value";
    reading.is_tokens_first = parts.is_hook;
    reading.layer = parts.layer;
    for (const std::string& part : parts.path) reading.module += (reading.module.empty() ? "" : ".") + part;
    if (*what == Holds::kWeights) reading.order = order_of(word, parts);
    reading.is_unsure = word.use == Use::kProjection && parts.suffix.empty();
    readings.push_back(reading);
    if (!reading.is_unsure) continue;
    reading.role = role_of(word.thing, Holds::kWeights);
    reading.order = order_of(word, parts);
    readings.push_back(reading);
  }
  return readings;
}

std::optional<int> layer_of_file(std::string_view stem) {
  const std::string text = lower(stem);
  const Numbered numbered = split_number(text);
  if (numbered.digits.empty() || !counts_layers(numbered.word) || numbered.word.size() < 2) return std::nullopt;
  return number_in(numbered.digits);
}

}  // namespace qkv
