#include "core/session/session_differences.h"

#include <algorithm>
#include <utility>

#include "core/base/number_text.h"

namespace qkv {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

template <class Numbers>
std::string list_of(const Numbers& numbers) {
  std::string text;
  for (const auto number : numbers) {
    text += text.empty() ? "" : ",";
    if constexpr (std::is_same_v<std::decay_t<decltype(number)>, float>) {
      text += format_shortest(number);
    } else {
      text += std::to_string(number);
    }
  }
  return text.empty() ? "none" : text;
}

// By the keys of the command line and the session file, in the same order for all.
Settings settings_of(const Session& session, const Shapes& shapes) {
  const AttentionOptions& o = session.problem.options;
  const auto on = [](bool value) { return std::string(value ? "on" : "off"); };
  const auto number = [](const std::optional<float>& value) { return value ? format_shortest(*value) : "none"; };
  std::string rope = "none";
  if (o.rope) {
    rope = (o.rope->style == RopeStyle::kHalf ? "half, base " : "interleaved, base ") + format_shortest(o.rope->base);
  }
  return {{"shapes", shapes_words(shapes)},
          {"source", std::string(source_words(session.problem.source))},
          {"W^O", session.problem.wo ? "there" : "none"},
          {"rope", rope},
          {"scale", o.scale ? format_shortest(*o.scale) : "1/√d_k"},
          {"softcap", number(o.softcap)},
          {"alibi", on(o.alibi)},
          {"bias", o.bias ? "there" : "none"},
          {"causal", on(o.causal)},
          {"align", o.align == CausalAlign::kTopLeft ? "top_left" : "bottom_right"},
          {"window", o.window ? std::to_string(*o.window) : "none"},
          {"key_valid", list_of(o.key_valid)},
          {"sink", list_of(o.sink)}};
}

void compare_tokens(const std::string& name, const std::vector<std::string>& here,
                    const std::vector<std::string>& there, std::vector<std::string>& lines) {
  if (here.size() != there.size()) return;  // the shapes say so
  const auto [mine, theirs] = std::mismatch(here.begin(), here.end(), there.begin());
  if (mine == here.end()) return;
  lines.push_back(name + ": number " + std::to_string(mine - here.begin()) + " is \"" + *mine + "\" here, \"" +
                  *theirs + "\" there");
}

}  // namespace

std::string_view source_words(const Source& source) {
  if (is_weights_only(source)) return "attention weights as given";
  return std::holds_alternative<ProjectedSource>(source) ? "Q, K, V projected from X" : "Q, K, V as given";
}

std::string shapes_words(const Shapes& s) {
  std::string text = std::to_string(s.heads) + (s.heads == 1 ? " head" : " heads");
  if (s.kv_heads != s.heads) text += " over " + std::to_string(s.kv_heads);
  return text + ", " + std::to_string(s.nq) + " × " + std::to_string(s.nk) + ", d_k " + std::to_string(s.d_k) +
         ", d_v " + std::to_string(s.d_v);
}

std::vector<std::string> session_differences(const Session& here, const Shapes& here_shapes, const Session& there,
                                             const Shapes& there_shapes) {
  std::vector<std::string> lines;
  compare_tokens("tokens", here.tokens, there.tokens, lines);
  if (here.key_tokens || there.key_tokens) compare_tokens("key_tokens", here.keys(), there.keys(), lines);
  const Settings mine = settings_of(here, here_shapes), theirs = settings_of(there, there_shapes);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (mine[i].second == theirs[i].second) continue;
    lines.push_back(mine[i].first + ": " + mine[i].second + " here, " + theirs[i].second + " there");
  }
  return lines;
}

}  // namespace qkv
