// One head as matrix products are drawn by hand: the left factor on the left, the right factor above, the product
// where they meet. Rows of Q, S, scaled, mask, A and O are the queries; columns of Kᵀ and S the keys. What ALiBi and a
// bias add stands before the scaled scores that it becomes part of.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/attention/formula.h"
#include "core/figure/figure_parts.h"

namespace qkv {
namespace {

constexpr double kMinSignMiddle = 20;  // of the signs between steps, below the upper edge of the rows

struct Steps {
  MatrixId q, k, v, scores, alibi, bias, scaled, keep, attn, out;
  bool has_alibi = false, has_bias = false;
  bool masked = false;  // something is hidden
  bool default_scale = true;
  std::string factor;  // "√3", or the number that multiplies
  bool adds() const { return has_alibi || has_bias; }
};

Steps steps_of(const FigureBuilder& b) {
  const int head = b.spec.matrix.head;
  const int kv = kv_head_of(b.trace.shapes, head);
  using enum MatrixKind;
  Steps s;
  s.q = {kQ, head};
  s.k = {kK, kv};
  s.v = {kV, kv};
  s.scores = {kScores, head};
  s.alibi = {kAlibi, head};
  s.bias = {kBias, 0};
  s.scaled = {kScaled, head};
  s.keep = {kKeep, 0};
  s.attn = {kAttn, head};
  s.out = {kHeadsOut, head};
  s.masked = count_hidden(b.trace) > 0;
  s.has_alibi = b.trace.find(s.alibi) != nullptr;
  s.has_bias = b.trace.find(s.bias) != nullptr;
  const std::optional<float>& scale = b.trace.problem.options.scale;
  s.default_scale = !scale.has_value();
  s.factor = s.default_scale ? "√" + std::to_string(b.trace.shapes.d_k) : factor_text(*scale);
  if (b.trace.problem.options.softcap) s.factor += ", cap " + factor_text(*b.trace.problem.options.softcap);
  return s;
}

// Why keys are hidden, in a word or two.
std::string mask_note(const FigureBuilder& b) {
  const AttentionOptions& options = b.trace.problem.options;
  const bool padding = std::ranges::any_of(options.key_valid, [](std::uint8_t valid) { return valid == 0; });
  std::string note;
  const auto add = [&](bool hides, const char* word) {
    if (hides) note += (note.empty() ? "" : ", ") + std::string(word);
  };
  add(options.causal, "causal");
  add(options.window.has_value(), "window");
  add(padding, "padding");
  return note;
}

// Places columns from left to right, as wide as their matrices and titles need.
struct Columns {
  const FigureBuilder& b;
  double x = 0;
  double place(Index cells, const std::vector<Title>& titles) {
    const double left = x;
    double width = b.cell() * static_cast<double>(cells);
    for (const Title& title : titles) width = std::max(width, title_width(b, title));
    x += width + kColumnGap;
    return left;
  }
  // Room for a step's sign and caption before the next column.
  void step(std::string_view caption) {
    const double needed = std::ceil(text_width(b, caption, caption_style(b))) + 16;
    x += std::max(0.0, 4 * std::ceil((needed - kColumnGap) / 4));
  }
};

// The sign between two steps, centred on `middle`, with a word below.
void put_step(FigureBuilder& b, std::string_view sign, std::string_view caption, double left, double right,
              double middle) {
  TextStyle style = note_style(b);
  style.size = 18;
  const double x = (left + right) / 2;
  put_text(b, sign, style, x, caption.empty() ? centered_baseline(middle, style.size) : middle, Align::kCenter);
  put_text(b, caption, caption_style(b), x, middle + 16, Align::kCenter);
}

void put_head_headline(FigureBuilder& b, const Steps& steps, double left, double top) {
  std::string note = attention_formula(b.trace.problem.options);
  if (b.trace.shapes.heads > 1) {
    note = "head " + std::to_string(steps.q.head + 1) + " of " + std::to_string(b.trace.shapes.heads) + " · " + note;
    put_head_dot(b, steps.q.head, left, top - 25);
    left += 18;
  }
  put_headline(b, with_lens(b, std::move(note)), left, top);
}

struct Places {
  double q = 0, s = 0, alibi = 0, bias = 0, scaled = 0, mask = 0, a = 0, o = 0;
};

struct Titles {
  Title q, s, alibi, bias, scaled, mask, a, o;
};

void put_lower_row(FigureBuilder& b, const Steps& s, const Places& at, const Titles& titles) {
  const auto put = [&](MatrixId id, double x, const Title& title) {
    put_matrix(b, id, x, 0);
    put_title(b, title, x, -kTitleRise);
  };
  put(s.q, at.q, titles.q);
  put(s.scores, at.s, titles.s);
  if (s.has_alibi) put(s.alibi, at.alibi, titles.alibi);
  if (s.has_bias) put(s.bias, at.bias, titles.bias);
  put(s.scaled, at.scaled, titles.scaled);
  if (s.masked) put(s.keep, at.mask, titles.mask);
  put(s.attn, at.a, titles.a);
  put(s.out, at.o, titles.o);
  const Shapes& n = b.trace.shapes;
  const double keys = b.cell() * static_cast<double>(n.nk);
  // Rows lower than a sign would draw it up into the titles.
  const double middle = std::max(kMinSignMiddle, b.cell() * static_cast<double>(n.nq) / 2);
  const double first_added = s.has_alibi ? at.alibi : at.bias, last_added = s.has_bias ? at.bias : at.alibi;
  put_step(b,
           s.adds()          ? s.default_scale ? "÷ +" : "× +"
           : s.default_scale ? "÷"
                             : "×",
           s.factor, at.s + keys, s.adds() ? first_added : at.scaled, middle);
  if (s.has_alibi && s.has_bias) put_step(b, "+", "", at.alibi + keys, at.bias, middle);
  if (s.adds()) put_step(b, "=", "", last_added + keys, at.scaled, middle);
  if (s.masked) put_step(b, "+", "", at.scaled + keys, at.mask, middle);
  put_step(b, "→", "softmax", (s.masked ? at.mask : at.scaled) + keys, at.a, middle);
  put_row_labels(b, row_labels(b, Axis::kQueries, n.nq), at.q, 0);
}

}  // namespace

Figure layout_head_view(FigureBuilder b) {
  const Steps s = steps_of(b);
  const Shapes& n = b.trace.shapes;
  const Title k_title = title_of(b, s.k, {"Kᵀ", shape_text(n.d_k, n.nk)}, /*transposed=*/true);
  const Title v_title = title_of(b, s.v, {"V", shape_text(n.nk, n.d_v)});
  // Dead rows are all 0, and NaN sums to nothing.
  const Matrix& weights = *b.trace.find(s.attn);
  const bool sums = (weights.rowwise().sum().array() - 1).abs().maxCoeff<Eigen::PropagateNaN>() < 1e-3F;
  const AttentionOptions& options = b.trace.problem.options;
  const Titles titles = {title_of(b, s.q, {"Q", shape_text(n.nq, n.d_k)}),
                         title_of(b, s.scores, {"S = " + scores_formula(options), ""}),
                         title_of(b, s.alibi, {"ALiBi", ""}),
                         title_of(b, s.bias, {"B", ""}),
                         title_of(b, s.scaled, {scaled_formula(options), ""}),
                         {"mask", mask_note(b)},
                         title_of(b, s.attn, {"A", sums ? "rows sum to 1" : shape_text(n.nq, n.nk)}),
                         title_of(b, s.out, {"O = AV", ""})};
  Columns columns{b};
  Places at;
  at.q = columns.place(n.d_k, {titles.q});
  at.s = columns.place(n.nk, {titles.s, k_title});
  columns.step(s.factor);
  if (s.has_alibi) at.alibi = columns.place(n.nk, {titles.alibi});
  if (s.has_bias) at.bias = columns.place(n.nk, {titles.bias});
  at.scaled = columns.place(n.nk, {titles.scaled});
  if (s.masked) at.mask = columns.place(n.nk, {titles.mask});
  columns.step("softmax");
  at.a = columns.place(n.nk, {titles.a});
  at.o = columns.place(n.d_v, {titles.o, v_title});
  put_lower_row(b, s, at, titles);

  const double upper = -kTitleHeight - 24;
  const double k_top = upper - b.cell() * static_cast<double>(n.d_k);
  const double v_top = upper - b.cell() * static_cast<double>(n.nk);
  put_matrix(b, s.k, at.s, k_top, true);
  const AxisLabels keys = column_labels(b, Axis::kKeys, n.nk);
  put_column_labels(b, keys, at.s, k_top);
  put_title(b, k_title, at.s, k_top - keys.extent - kTitleRise);
  put_matrix(b, s.v, at.o, v_top);
  put_row_labels(b, row_labels(b, Axis::kKeys, n.nk), at.o, v_top);
  put_title(b, v_title, at.o, v_top - kTitleRise);

  const double left = at.q - row_labels(b, Axis::kQueries, n.nq).extent;
  put_head_headline(b, s, std::round(left), std::min(k_top - keys.extent, v_top) - kTitleHeight - 8);
  using enum MatrixKind;
  const std::vector<BarSpec> bars = {bar_of(b, kAttn, "A"), bar_of(b, kScores, "S, " + scaled_formula(options)),
                                     bar_of(b, kQ, "Q, K, V, O")};
  put_bars(b, bars, at.q, std::max(16.0, b.cell() * static_cast<double>(n.nq)) + 56, 152);
  return finish(b);
}

}  // namespace qkv
