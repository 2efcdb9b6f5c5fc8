// All heads: a grid of cards with the weights of each head, in one colour scale, and what they say about the head.
#include <algorithm>
#include <cmath>

#include "core/attention/head_stats.h"
#include "core/base/number_text.h"
#include "core/figure/figure_parts.h"

namespace qkv {
namespace {

constexpr double kPadding = 12;      // inside a card
constexpr double kCardGap = 16;      // between cards
constexpr double kMinContent = 136;  // room for the statistics
constexpr double kHeadLine = 28;     // the line with the head's name
constexpr double kStatLine = 20;
constexpr int kStatLines = 3;
constexpr double kPleasantAspect = 1.6;

struct Card {
  double width = 0, height = 0;
};

Card card_size(const FigureBuilder& b) {
  const double keys = b.cell() * static_cast<double>(b.trace.shapes.nk);
  const double queries = b.cell() * static_cast<double>(b.trace.shapes.nq);
  return {std::max(keys, kMinContent) + 2 * kPadding,
          kPadding + kHeadLine + queries + 8 + kStatLines * kStatLine + kPadding - 4};
}

// Cards in a row so that the grid is about as wide as a page, with few gaps in the last row.
int choose_columns(int heads, const Card& card) {
  int best = 1;
  double best_cost = 1e300;
  for (int columns = 1; columns <= heads; ++columns) {
    const int rows = (heads + columns - 1) / columns;
    const double aspect = columns * (card.width + kCardGap) / (rows * (card.height + kCardGap));
    const double missing = static_cast<double>(columns * rows - heads) / columns;
    const double cost = std::fabs(std::log(aspect / kPleasantAspect)) + 0.8 * missing;
    if (cost < best_cost) {
      best_cost = cost;
      best = columns;
    }
  }
  return best;
}

void put_stat(FigureBuilder& b, std::string_view name, double value, double left, double right, double baseline) {
  TextStyle number = caption_style(b);
  number.color = b.colors.text;
  put_text(b, name, caption_style(b), left, baseline);
  put_text(b, format_fixed(value, 2), number, right, baseline, Align::kRight);
}

// What the cells show through a lens, as far as there is room from `left` on, at the right.
void put_lens_name(FigureBuilder& b, MatrixId id, double left, double right, double middle) {
  if (!has_lens(b, id)) return;
  const TextStyle style = caption_style(b);
  const LensName name = lens_matrix_name(*b.lens, id.kind);
  const std::string unit = title_unit(b, power_of(b.lens->each.at(id)));
  const bool whole = left + 8 + text_width(b, name.whole + unit, style) <= right;
  put_text(b, (whole ? name.whole : name.brief) + unit, style, right, centered_baseline(middle, style.size),
           Align::kRight);
}

void put_card(FigureBuilder& b, int head, double x, double y, const Card& card) {
  b.figure.rects.push_back({x, y, card.width, card.height, 8, b.colors.line});
  b.figure.rects.push_back({x + 1, y + 1, card.width - 2, card.height - 2, 7, b.colors.panel});
  const double left = x + kPadding, right = x + card.width - kPadding;
  const double middle = y + kPadding + 8;
  put_head_dot(b, head, left, middle);
  TextStyle name = title_style(b);
  name.size = 13;
  const double used =
      put_text(b, "head " + std::to_string(head + 1), name, left + 16, centered_baseline(middle, name.size));
  put_lens_name(b, {MatrixKind::kAttn, head}, left + 16 + used, right, middle);

  const double top = y + kPadding + kHeadLine;
  put_matrix(b, {MatrixKind::kAttn, head}, left, top);

  const Shapes& n = b.trace.shapes;
  const HeadStats stats = head_stats(b.trace, head);
  double baseline = top + b.cell() * static_cast<double>(n.nq) + 8 + 13;
  put_stat(b, "entropy", stats.entropy, left, right, baseline);
  put_stat(b, "previous token", stats.previous_token, left, right, baseline += kStatLine);
  put_stat(b, "first token", stats.first_token, left, right, baseline += kStatLine);
}

}  // namespace

Figure layout_heads_view(FigureBuilder b) {
  const int heads = b.trace.shapes.heads;
  const Card card = card_size(b);
  const int columns = choose_columns(heads, card);
  for (int head = 0; head < heads; ++head) {
    put_card(b, head, (head % columns) * (card.width + kCardGap), (head / columns) * (card.height + kCardGap), card);
  }
  const int rows = (heads + columns - 1) / columns;
  const std::string note =
      heads == 1 ? "attention weights" : "attention weights of " + std::to_string(heads) + " heads";
  put_headline(b, with_lens(b, note), 0, 0);
  const BarSpec bar = bar_of(b, MatrixKind::kAttn, "");
  put_bars(b, {bar}, 0, rows * (card.height + kCardGap) - kCardGap + bar_room(bar, 24), 152);
  return finish(b);
}

}  // namespace qkv
