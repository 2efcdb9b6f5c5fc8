// The LaTeX document of a session.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/attention/formula.h"
#include "core/attention/position.h"
#include "core/base/number_text.h"
#include "core/session/code.h"
#include "core/session/latex_text.h"

namespace qkv {
namespace {

constexpr int kMostHeads = 8;  // written out

// A formula of core/attention/formula.h as mathematics.
std::string math_of(std::string formula) {
  const std::pair<std::string_view, std::string_view> words[] = {{"softmax", "\\operatorname{softmax}"},
                                                                 {"cap(", "\\operatorname{cap}("},
                                                                 {"ALiBi", "\\mathrm{ALiBi}"},
                                                                 {"; sink", ";\\ \\mathrm{sink}"},
                                                                 {"√dₖ", "\\sqrt{d_k}"},
                                                                 {"ᵀ", "^{\\top}"},
                                                                 {"·", "\\cdot "}};
  for (const auto& [from, to] : words) {
    for (std::size_t at = 0; (at = formula.find(from, at)) != std::string::npos; at += to.size()) {
      formula.replace(at, from.size(), to);
    }
  }
  return formula;
}

std::string exact(float value) { return "$" + latex_exact(value) + "$"; }

// "$1$, $0.5$, \\dots" of the heads that are written out: lines can break between them.
template <class ValueOf>
std::string of_heads(int heads, ValueOf value_of) {
  std::string text;
  for (int head = 0; head < std::min(heads, kMostHeads); ++head) {
    text += (head > 0 ? ", " : "") + exact(static_cast<float>(value_of(head)));
  }
  return heads > kMostHeads ? text + ", \\dots" : text;
}

std::string item(const std::string& sentence) { return "\\item " + sentence + "\n"; }

std::string rope_item(const Rope& rope) {
  const std::string pair = rope.style == RopeStyle::kHalf ? "(x_i, x_{i + d_k/2})" : "(x_{2i}, x_{2i+1})";
  return item("$R$ turns the pairs $" + pair +
              "$ of the token at position $p$ by the angle $p \\cdot b^{-2i/d_k}$, $b =$ " + exact(rope.base) +
              "; positions and $i$ count from 0.");
}

std::string alibi_item(int heads) {
  return item(
      "ALiBi adds $-m_h \\cdot |i - j|$ for the query at $i$ and the key at $j$; the slopes $m_h$ of the heads are " +
      of_heads(heads, [&](int head) { return alibi_slope(head, heads); }) + ".");
}

std::string position_item(const AttentionOptions& options, const Shapes& shapes) {
  if (shapes.nq == shapes.nk || !(options.causal || options.window || options.alibi)) return "";
  return item(options.align == CausalAlign::kBottomRight ? "The last query stands at the last key."
                                                         : "The first query stands at the first key.");
}

std::string padding_item(const Session& session) {
  const std::vector<std::uint8_t>& valid = session.problem.options.key_valid;
  if (valid.empty()) return "";
  std::string tokens;
  std::size_t count = 0;
  for (std::size_t key = 0; key < valid.size(); ++key) {
    if (valid[key] != 0) continue;
    if (++count <= 20)
      tokens += (count > 1 ? ", " : "") + ("\\texttt{" + latex_text(session.keys()[key], 16, true) + "}");
  }
  if (count == 0) return item("Padding: no key is hidden by it.");
  return item("Padding hides the keys " + tokens + (count > 20 ? ", \\dots" : "") + ".");
}

std::string sink_item(const std::vector<float>& sink) {
  if (sink.empty()) return "";
  const auto value_of = [&](int head) { return sink[static_cast<std::size_t>(head)]; };
  return item("The sink is a logit in the denominator of the softmax alone, of each head: " +
              of_heads(static_cast<int>(sink.size()), value_of) + ".");
}

// What each option of the session means.
std::string option_list(const Session& session, const Shapes& shapes) {
  const AttentionOptions& options = session.problem.options;
  std::string items;
  if (options.rope) items += rope_item(*options.rope);
  if (options.scale) {
    items += item("The scale is " + exact(*options.scale) + " in place of $1/\\sqrt{d_k}$.");
  }
  if (options.softcap) {
    items += item("$\\operatorname{cap}(s) = c \\cdot \\tanh(s/c)$ with $c =$ " + exact(*options.softcap) + ".");
  }
  if (options.alibi) items += alibi_item(shapes.heads);
  items += position_item(options, shapes);
  if (options.causal) items += item("Causal: a query sees no key after it, $j \\le i$.");
  if (options.window)
    items += item("Window: a query sees keys with $|i - j| < " + std::to_string(*options.window) + "$.");
  items += padding_item(session) + sink_item(options.sink);
  if (shapes.heads != shapes.kv_heads) {
    items += item("Groups of " + std::to_string(shapes.heads / shapes.kv_heads) +
                  " query heads share a key/value head: there are " + std::to_string(shapes.kv_heads) + ".");
  }
  return items.empty() ? "" : "\\begin{itemize}\n" + items + "\\end{itemize}\n";
}

class Writer {
 public:
  Writer(const Session& session, const Trace& trace)
      : session_(session), trace_(trace), shapes_(trace.shapes), options_(session.problem.options) {}

  std::string document() {
    const bool projected = std::holds_alternative<ProjectedSource>(session_.problem.source);
    std::string body = start();
    if (projected) body += projection();
    if (options_.bias) body += matrix({MatrixKind::kBias}, "B");
    for (int head = 0; head < std::min(shapes_.heads, kMostHeads); ++head) body += head_steps(head);
    if (shapes_.heads > kMostHeads) {
      body += "\nThe other " + std::to_string(shapes_.heads - kMostHeads) + " heads go the same way.\n";
    }
    body += finish();
    return latex_preamble(body) + "\\begin{document}\n" + body + "\\end{document}\n";
  }

 private:
  std::string start() const {
    std::string text;
    if (!session_.title.empty()) text += "\\section*{" + latex_text(session_.title) + "}\n";
    text += "\\[O = " + math_of(attention_formula(options_)) + "\\]\n";
    text += "$N_q = " + std::to_string(shapes_.nq) + "$ queries, $N_k = " + std::to_string(shapes_.nk) +
            "$ keys, $H = " + std::to_string(shapes_.heads) + (shapes_.heads == 1 ? "$ head" : "$ heads") +
            ", $d_k = " + std::to_string(shapes_.d_k) + "$, $d_v = " + std::to_string(shapes_.d_v) + "$";
    if (shapes_.d_model > 0) text += ", $d_{\\mathrm{model}} = " + std::to_string(shapes_.d_model) + "$";
    return text + ".\n" + option_list(session_, shapes_);
  }

  std::string projection() const {
    const auto& source = std::get<ProjectedSource>(session_.problem.source);
    std::string text = "\\subsection*{Inputs}\n" + matrix({MatrixKind::kX}, "X");
    text += matrix({MatrixKind::kWq}, "W^Q") + matrix({MatrixKind::kBq}, "b^Q") + matrix({MatrixKind::kWk}, "W^K") +
            matrix({MatrixKind::kBk}, "b^K") + matrix({MatrixKind::kWv}, "W^V") + matrix({MatrixKind::kBv}, "b^V");
    return text + std::string("\\[Q = XW^Q") + (source.bq ? " + b^Q" : "") + ",\\quad K = XW^K" +
           (source.bk ? " + b^K" : "") + ",\\quad V = XW^V" + (source.bv ? " + b^V" : "") + "\\]\n" +
           (shapes_.heads > 1 ? "Head $h$ owns the columns from $h \\cdot d$ on, counted from 0.\n" : "");
  }

  std::string head_steps(int head) const {
    const std::string sub = shapes_.heads > 1 ? "_{" + std::to_string(head + 1) + "}" : "";
    const int kv = kv_head_of(shapes_, head);
    const std::string kv_sub = shapes_.kv_heads > 1 ? "_{" + std::to_string(kv + 1) + "}" : "";
    const bool masks = options_.causal || options_.window || !options_.key_valid.empty();
    using Hidden = LatexMatrix::Hidden;
    std::string text = shapes_.heads > 1 ? "\\subsection*{Head " + std::to_string(head + 1) + "}\n" : "";
    text += matrix({MatrixKind::kQ, head}, "Q" + sub) + matrix({MatrixKind::kK, kv}, "K" + kv_sub) +
            matrix({MatrixKind::kV, kv}, "V" + kv_sub);
    const std::string product =
        options_.rope ? "R(Q" + sub + ")\\,R(K" + kv_sub + ")^{\\top}" : "Q" + sub + "K" + kv_sub + "^{\\top}";
    text += matrix({MatrixKind::kScores, head}, "S" + sub + " = " + product);
    if (options_.alibi) text += matrix({MatrixKind::kAlibi, head}, "\\mathrm{ALiBi}" + sub);
    text += matrix({MatrixKind::kScaled, head}, "\\tilde S" + sub + " = " + math_of(scaled_formula(options_)));
    if (masks) text += matrix({MatrixKind::kScaled, head}, "\\text{masked}", Hidden::kMinusInfinity);
    const std::string softmax = std::string("\\operatorname{softmax}(") +
                                (masks ? "\\text{masked}" : "\\tilde S" + sub) +
                                (options_.sink.empty() ? "" : ";\\ \\mathrm{sink}") + ")";
    text += matrix({MatrixKind::kAttn, head}, "A" + sub + " = " + softmax, masks ? Hidden::kZero : Hidden::kShown);
    return text + matrix({MatrixKind::kHeadsOut, head}, "O" + sub + " = A" + sub + "V" + kv_sub);
  }

  std::string finish() const {
    std::string text;
    if (shapes_.heads > 1) text += "\\subsection*{All heads}\n" + matrix({MatrixKind::kConcat}, "\\mathrm{Concat}");
    if (!session_.problem.wo) return text;
    text += matrix({MatrixKind::kWo}, "W^O") + matrix({MatrixKind::kBo}, "b^O");
    const std::string product = shapes_.heads > 1 ? "\\mathrm{Concat}\\cdot W^O" : "O\\,W^O";
    return text + matrix({MatrixKind::kOut}, "\\mathrm{Out} = " + product + (session_.problem.bo ? " + b^O" : ""));
  }

  // Nothing where the session has no such matrix.
  std::string matrix(MatrixId id, const std::string& name,
                     LatexMatrix::Hidden hidden = LatexMatrix::Hidden::kShown) const {
    const std::shared_ptr<const MatrixSource> source = trace_.source(id);
    if (source == nullptr) return "";
    return latex_matrix(session_, {name, row_axis(id.kind), col_axis(id.kind), source.get(), hidden});
  }

  const Session& session_;
  const Trace& trace_;
  const Shapes& shapes_;
  const AttentionOptions& options_;
};

}  // namespace

std::string latex_document(const Session& session, const Trace& trace) { return Writer(session, trace).document(); }

}  // namespace qkv
