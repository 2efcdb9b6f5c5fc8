#include "core/attention/formula.h"

#include <charconv>
#include <cmath>

#include "core/base/number_text.h"

namespace qkv {
namespace {

// The scores `s` after scale, cap, ALiBi and bias. A product of several letters needs no brackets before "/√dₖ".
std::string scaled(const AttentionOptions& options, const std::string& s) {
  std::string text = options.scale ? factor_text(*options.scale) + "·" + s : s + "/√dₖ";
  if (options.softcap) text = "cap(" + text + ")";
  if (options.alibi) text += " + ALiBi";
  if (options.bias) text += " + B";
  return text;
}

}  // namespace

std::string factor_text(float factor) {
  const std::string exact = format_shortest(factor);
  if (exact.size() <= 6) return exact;
  char digits[32];
  const auto [end, problem] =
      std::to_chars(digits, digits + sizeof digits, static_cast<double>(factor), std::chars_format::general, 3);
  return problem == std::errc{} ? std::string(digits, end) : exact;
}

std::string scores_formula(const AttentionOptions& options) { return options.rope ? "R(Q)·R(K)ᵀ" : "QKᵀ"; }

std::string scaled_formula(const AttentionOptions& options) { return scaled(options, "S"); }

std::string attention_formula(const AttentionOptions& options) {
  const std::string sink = options.sink.empty() ? "" : "; sink";
  return "softmax(" + scaled(options, scores_formula(options)) + sink + ")·V";
}

}  // namespace qkv
