#include "app/panels/inspector_parts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/panels/inspector_words.h"
#include "core/attention/formula.h"
#include "core/attention/given_weights.h"
#include "core/attention/head_stats.h"
#include "core/attention/position.h"
#include "core/base/number_text.h"

namespace qkv {
namespace {

constexpr std::size_t kMostTerms = 14;  // longer sums show their largest terms

// Which terms to write: all in order, or the largest by magnitude.
std::vector<std::size_t> shown_terms(const std::vector<Term>& terms) {
  std::vector<std::size_t> order(terms.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (terms.size() <= kMostTerms) return order;
  const auto size = [&](std::size_t i) {
    const double p = std::abs(terms[i].product());
    return std::isnan(p) ? HUGE_VAL : p;
  };
  std::partial_sort(order.begin(), order.begin() + kMostTerms, order.end(),
                    [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
  order.resize(kMostTerms);
  return order;
}

void write_sum(InspectorWriter& w, const Explanation& e, Axis axis, const std::string& name) {
  w.section("SUM");
  const auto order = shown_terms(e.terms);
  std::vector<bool> shown(e.terms.size(), false);
  for (const std::size_t i : order) {
    const Term& t = e.terms[i];
    const std::string label =
        axis == Axis::kKeys || axis == Axis::kQueries ? w.token(axis, t.index) : std::to_string(t.index + 1);
    w.row(label, w.factor(t.left) + " × " + w.factor(t.right), w.number(t.product()), w.ui().colors().text);
    shown[i] = true;
  }
  double rest = 0;
  for (std::size_t i = 0; i < e.terms.size(); ++i)
    if (!shown[i]) rest += e.terms[i].product();
  if (order.size() < e.terms.size())
    w.row("", std::to_string(e.terms.size() - order.size()) + " smaller terms", w.number(rest), w.ui().colors().dim);
  if (e.bias) w.row("", "bias", w.number(*e.bias), w.ui().colors().text);
  w.rule();
  w.row("", name, w.number(e.value), w.ui().colors().text, true);
}

std::string mask_words(MaskReason reason) {
  return reason == MaskReason::kCausal    ? "hidden: a later token"
         : reason == MaskReason::kWindow  ? "hidden: outside the window"
         : reason == MaskReason::kPadding ? "hidden: padding"
                                          : "";
}

void write_softmax(InspectorWriter& w, const Explanation& e) {
  w.section("SOFTMAX");
  if (e.dead_row) {
    w.paragraph("No key is visible to this query: its weights are 0 by rule, and so is its output.");
    return;
  }
  if (e.mask != MaskReason::kVisible) w.pair("this key", mask_words(e.mask));
  w.pair("row maximum", w.number(e.maximum));
  std::vector<std::size_t> order(e.softmax.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (order.size() > kMostTerms) {
    std::partial_sort(order.begin(), order.begin() + kMostTerms, order.end(),
                      [&](std::size_t a, std::size_t b) { return e.softmax[a].weight > e.softmax[b].weight; });
    order.resize(kMostTerms);
  }
  for (const std::size_t i : order) {
    const SoftmaxTerm& t = e.softmax[i];
    if (t.mask != MaskReason::kVisible) {
      w.row(w.token(Axis::kKeys, t.key), "hidden", "0", w.ui().colors().faint);
      continue;
    }
    w.row(w.token(Axis::kKeys, t.key), "exp(" + w.number(t.scaled - e.maximum) + ")", w.number(t.exponential),
          t.key == e.col ? w.ui().colors().accent : w.ui().colors().text);
  }
  const auto visible = static_cast<std::size_t>(
      std::count_if(e.softmax.begin(), e.softmax.end(), [](const auto& t) { return t.mask == MaskReason::kVisible; }));
  if (order.size() < visible)
    w.row("", "and " + std::to_string(visible - order.size()) + " more", "", w.ui().colors().dim);
  if (e.sink)
    w.row("sink", "exp(" + w.number(*e.sink - e.maximum) + ")", w.number(e.sink_exponential), w.ui().colors().dim);
  w.rule();
  w.row("", "denominator", w.number(e.denominator), w.ui().colors().text);
  if (e.mask == MaskReason::kVisible)
    w.row("", w.number(e.softmax[static_cast<std::size_t>(e.col)].exponential) + " ÷ " + w.number(e.denominator),
          w.number(e.value), w.ui().colors().text, true);
}

// A given weight among those of its row, `attn` [1, Nk].
void write_place(InspectorWriter& w, const Matrix& attn, const Explanation& e) {
  const WeightPlace place = place_in_row({attn.data(), static_cast<std::size_t>(attn.cols())}, e.col);
  w.section("IN ITS ROW");
  const double share = 100 * e.value / place.sum;
  w.pair("share of the row", std::isfinite(share) ? format_fixed(share, 1) + " %" : "–");
  w.pair("rank", place.rank == 0 ? "–" : std::to_string(place.rank) + " of " + std::to_string(place.keys));
  const bool off = std::abs(place.sum - 1) > kGivenRowTolerance;
  w.pair("row sum", w.number(place.sum) + (off ? ", not 1" : ""));
}

// What a full bar stands for: 1, or the largest finite magnitude where given weights exceed it.
double bar_end(const Matrix& weights) {
  const FiniteExtent extent = finite_extent(weights);
  if (extent.count == 0) return 1;
  return std::max({1.0, std::abs(static_cast<double>(extent.low)), std::abs(static_cast<double>(extent.high))});
}

// `attn` [1, Nk]: the query's weights.
void write_row_of_weights(InspectorWriter& w, const StageInput& in, int head, Index row, const Matrix& attn) {
  const Trace& trace = in.computed.trace;
  w.section("WHERE IT LOOKS");
  std::vector<Index> keys(static_cast<std::size_t>(attn.cols()));
  std::iota(keys.begin(), keys.end(), Index{0});
  const std::size_t most = std::min<std::size_t>(8, keys.size());
  std::partial_sort(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(most), keys.end(), [&](Index a, Index b) {
    const auto weight = [&](Index key) { return std::isnan(attn(0, key)) ? -1.0f : attn(0, key); };
    return weight(a) != weight(b) ? weight(a) > weight(b) : a < b;
  });
  const Index best = keys.front();
  if (keys.size() > most)
    keys.resize(most);
  else
    std::sort(keys.begin(), keys.end());
  const double full = bar_end(attn);
  for (const Index key : keys)
    w.bar(w.token(Axis::kKeys, key), attn(0, key), full, false, w.ui().colors().accent, w.number(attn(0, key)));
  w.section("ROW");
  const RowStats& stats = trace.heads[static_cast<std::size_t>(head)].rows[static_cast<std::size_t>(row)];
  const double entropy = row_entropy({attn.data(), static_cast<std::size_t>(attn.cols())});
  w.pair("entropy", (std::isnan(entropy) ? std::string("–") : format_fixed(entropy, 2)) + " of " +
                        format_fixed(stats.visible > 0 ? std::log(static_cast<double>(stats.visible)) : 0, 2));
  if (stats.visible > 0) w.pair("largest", w.token(Axis::kKeys, best) + "  " + w.number(attn(0, best)));
  if (!is_weights_only(trace.problem.source)) w.pair("sum", w.number(attn.cast<double>().sum()));
  if (!trace.problem.options.sink.empty() && !in.computed.digest.refining) w.pair("sink", w.number(stats.sink));
}

void write_every_head(InspectorWriter& w, const StageInput& in, const CellRef& cell) {
  w.section("THE SAME CELL IN EVERY HEAD");
  const int heads = in.computed.trace.shapes.heads;
  Matrix values(1, heads);
  for (int head = 0; head < heads; ++head)
    values(0, head) = shown_cells(in, {MatrixKind::kAttn, head}).at(cell.row, cell.col);
  const double most = bar_end(values);
  for (int head = 0; head < heads; ++head) w.dot_bar(head, values(0, head), most, false, w.number(values(0, head)));
}

void write_head_parts(InspectorWriter& w, const Explanation& e) {
  w.section("WHAT EACH HEAD ADDS");
  double most = 0;
  for (const HeadPart& part : e.parts)
    if (std::isfinite(part.value)) most = std::max(most, std::abs(part.value));
  for (const HeadPart& part : e.parts)
    w.dot_bar(part.head, part.value, most, true, (part.value > 0 ? "+" : "") + w.number(part.value));
  if (e.bias) w.pair("bias", (*e.bias > 0 ? "+" : "") + w.number(*e.bias));
  w.rule();
  w.row("", "sum", w.number(e.value), w.ui().colors().text, true);
}

void write_scale(InspectorWriter& w, const Explanation& e, const StageInput& in) {
  w.section("SCALE");
  const bool own = in.computed.session.problem.options.scale.has_value();
  const std::string factor =
      own ? w.number(e.scale) : "1/√" + std::to_string(in.computed.trace.shapes.d_k) + " = " + w.number(e.scale);
  w.row("score", "", w.number(e.scores), w.ui().colors().text);
  w.row("scale", "", factor, w.ui().colors().text);
  w.rule();
  const AttentionOptions& options = in.computed.trace.problem.options;
  const bool more = options.softcap || options.alibi || options.bias;
  w.row("", w.number(e.scores) + " × " + w.number(e.scale), w.number(e.after_scale), w.ui().colors().text, !more);
  if (!more) return;
  if (options.softcap) {
    const std::string cap = w.factor(static_cast<double>(*options.softcap));
    w.row("softcap", cap + " · tanh(s ÷ " + cap + ")", w.number(e.after_softcap), w.ui().colors().text);
  }
  if (options.alibi) w.row("ALiBi", "distance", w.number(e.alibi), w.ui().colors().text);
  if (options.bias) w.row("bias", "", w.number(e.bias_value), w.ui().colors().text);
  w.rule();
  w.row("", "scaled", w.number(e.value), w.ui().colors().text, true);
}

// What ALiBi and the bias make of the score of this cell in the shown head.
void write_added(InspectorWriter& w, const Explanation& e, const StageInput& in) {
  const Trace& trace = in.computed.trace;
  const AttentionOptions& options = trace.problem.options;
  const int shown = std::clamp(in.session.view.head, 0, trace.shapes.heads - 1);
  const int head = e.id.kind == MatrixKind::kAlibi ? e.id.head : shown;
  const auto scaled = explain(trace, {MatrixKind::kScaled, head}, e.row, e.col);
  if (!scaled) return;
  w.section(trace.shapes.heads > 1 ? "ADDED TO THE SCORE OF HEAD " + std::to_string(head + 1) : "ADDED TO THE SCORE");
  w.row("score", options.softcap ? "scaled and capped" : "scaled", w.number(scaled->after_softcap),
        w.ui().colors().text);
  if (options.alibi) {
    const Index distance = std::abs(e.row + query_shift(options, trace.shapes.nq, trace.shapes.nk) - e.col);
    const double slope = alibi_slope(head, trace.shapes.heads);
    w.row("ALiBi", "−" + factor_text(static_cast<float>(slope)) + " × " + std::to_string(distance),
          w.number(scaled->alibi), w.ui().colors().text);
  }
  if (options.bias) w.row("bias", "B", w.number(scaled->bias_value), w.ui().colors().text);
  w.rule();
  w.row("", "what softmax sees", w.number(scaled->value), w.ui().colors().text, true);
}

}  // namespace

void write_parts(InspectorWriter& w, const StageInput& in, const Explanation& e, const Matrix& weights) {
  const std::string name = cell_name(e.id, e.row, e.col, in.computed.session, in.tokens);
  switch (e.id.kind) {
    case MatrixKind::kScores:
      write_sum(w, e, Axis::kDk, name);
      break;
    case MatrixKind::kScaled:
      write_scale(w, e, in);
      break;
    case MatrixKind::kAlibi:
    case MatrixKind::kBias:
      write_added(w, e, in);
      break;
    case MatrixKind::kAttn:
      if (is_weights_only(in.computed.trace.problem.source))
        write_place(w, weights, e);
      else
        write_softmax(w, e);
      break;
    case MatrixKind::kHeadsOut:
    case MatrixKind::kConcat:
      write_sum(w, e, Axis::kKeys, name);
      break;
    case MatrixKind::kOut:
      write_head_parts(w, e);
      break;
    default:
      if (!e.terms.empty()) write_sum(w, e, Axis::kModel, name);
  }
  const int heads = in.computed.trace.shapes.heads;
  if (e.id.kind == MatrixKind::kAttn || e.id.kind == MatrixKind::kHeadsOut)
    write_row_of_weights(w, in, e.id.head, e.row, weights);
  if (e.id.kind == MatrixKind::kAttn && heads > 1) write_every_head(w, in, {e.id, e.row, e.col});
}

}  // namespace qkv
