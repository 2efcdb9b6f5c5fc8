#include "core/figure/figure_parts.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/number_text.h"
#include "core/figure/cell_text.h"
#include "core/figure/label_step.h"

namespace qkv {
namespace {

// Half the height of Inter's capitals and digits, in parts of the font size.
constexpr double kHalfCapital = 0.364;
constexpr double kSmallLine = 13;   // line distance of 11-pixel labels
constexpr double kNormalLine = 17;  // and of 13-pixel labels
constexpr double kCaptionLine = 20;
constexpr double kShortLabel = 24;  // labels up to this width are thinned rather than turned

TextStyle label_style(const FigureSheet& b, double size) {
  return {.size = size, .bold = false, .color = b.colors.dim, .max_width = kMaxLabelWidth};
}

// Width of the widest label that is drawn.
double widest(const FigureSheet& b, const AxisLabels& labels) {
  double width = 0;
  for (auto i = static_cast<std::size_t>(labels.first); i < labels.texts.size();
       i += static_cast<std::size_t>(labels.step)) {
    width = std::max(width, text_width(b, labels.texts[i], labels.style));
  }
  return std::ceil(width);
}

void set_names(const FigureSheet& b, Axis axis, Index count, AxisLabels& labels) {
  const AxisNames names(b.session, axis, count, token_style(b.session, b.spec.look));
  for (Index i = 0; i < count; ++i) {
    labels.texts.push_back(names[i]);
    labels.special.push_back(names.is_special(i));
  }
}

// Labels that are drawn stand at least `room` pixels apart.
void thin_out(const FigureSheet& b, double room, AxisLabels& labels) {
  const auto count = static_cast<Index>(labels.texts.size());
  const LabelSteps steps =
      label_steps(count, room / b.cell(), [&](Index i) { return labels.texts[static_cast<std::size_t>(i)]; });
  labels.first = steps.first;
  labels.step = steps.step;
}

TextStyle style_of(const FigureSheet& b, const AxisLabels& labels, std::size_t index) {
  TextStyle style = labels.style;
  if (labels.special[index]) style.color = b.colors.faint;
  return style;
}

}  // namespace

FigureSheet make_sheet(const Session& session, const FigureSpec& spec, const TextShaper& shaper) {
  FigureSheet b{session, spec, shaper, palette(spec.theme), {}};
  b.figure.theme = spec.theme;
  b.figure.transparent = spec.transparent;
  return b;
}

TextStyle title_style(const FigureSheet& b) { return {.size = 14, .bold = true, .color = b.colors.text}; }
TextStyle note_style(const FigureSheet& b) { return {.size = 13, .bold = false, .color = b.colors.dim}; }
TextStyle caption_style(const FigureSheet& b) { return {.size = 11, .bold = false, .color = b.colors.dim}; }

double text_width(const FigureSheet& b, std::string_view text, const TextStyle& style) {
  return b.shaper.measure(text, style).width;
}

double put_text(FigureSheet& b, std::string_view text, const TextStyle& style, double x, double baseline, Align align) {
  const TextSize size = b.shaper.measure(text, style);
  const double shift = align == Align::kLeft ? 0 : align == Align::kCenter ? size.width / 2 : size.width;
  const double anchor = align == Align::kLeft ? 0 : align == Align::kCenter ? 0.5 : 1;
  b.figure.texts.push_back(
      {std::string(text), style, std::round(x - shift), std::round(baseline) - size.baseline, 0, anchor});
  return size.width;
}

double centered_baseline(double middle, double size) { return std::round(middle + kHalfCapital * size); }

double title_width(const FigureSheet& b, const Title& title) {
  const double symbol = std::ceil(text_width(b, title.symbol, title_style(b)));
  return title.note.empty() ? symbol : symbol + kLabelGap + std::ceil(text_width(b, title.note, note_style(b)));
}

double put_title(FigureSheet& b, const Title& title, double x, double baseline) {
  const double symbol = std::ceil(put_text(b, title.symbol, title_style(b), x, baseline));
  if (title.note.empty()) return symbol;
  return symbol + kLabelGap + put_text(b, title.note, note_style(b), x + symbol + kLabelGap, baseline);
}

AxisLabels row_labels(const FigureSheet& b, Axis axis, Index count) {
  AxisLabels labels;
  if (axis == Axis::kSingle) return labels;
  set_names(b, axis, count, labels);
  const bool small = b.cell() < kNormalLine;
  labels.style = label_style(b, small ? 11 : 13);
  thin_out(b, kSmallLine, labels);
  labels.extent = widest(b, labels) + kLabelGap;
  return labels;
}

AxisLabels column_labels(const FigureSheet& b, Axis axis, Index count) {
  AxisLabels labels;
  if (axis == Axis::kSingle) return labels;
  set_names(b, axis, count, labels);
  labels.style = label_style(b, b.cell() < 22 ? 11 : 13);
  // All of them are measured only where all may be drawn: a label takes at least some pixels.
  if (b.cell() < 6) thin_out(b, kSmallLine, labels);
  const double width = widest(b, labels);
  if (width <= std::max(kShortLabel, b.cell() - 4)) {
    thin_out(b, width + 4, labels);
    labels.extent = kLabelGap + labels.style.size;
  } else if (b.cell() >= 18) {
    labels.angle = -std::numbers::pi / 4;
    labels.extent = kLabelGap + std::ceil((width + labels.style.size / 2) * std::numbers::sqrt2 / 2);
  } else {
    labels.angle = -std::numbers::pi / 2;
    thin_out(b, kSmallLine, labels);
    labels.extent = kLabelGap + width;
  }
  return labels;
}

void put_row_labels(FigureSheet& b, const AxisLabels& labels, double matrix_x, double matrix_y) {
  for (auto i = static_cast<std::size_t>(labels.first); i < labels.texts.size();
       i += static_cast<std::size_t>(labels.step)) {
    const double middle = matrix_y + (static_cast<double>(i) + 0.5) * b.cell();
    put_text(b, labels.texts[i], style_of(b, labels, i), matrix_x - kLabelGap,
             centered_baseline(middle, labels.style.size), Align::kRight);
  }
}

void put_column_labels(FigureSheet& b, const AxisLabels& labels, double matrix_x, double matrix_y) {
  for (auto i = static_cast<std::size_t>(labels.first); i < labels.texts.size();
       i += static_cast<std::size_t>(labels.step)) {
    const double middle = matrix_x + (static_cast<double>(i) + 0.5) * b.cell();
    const double foot = matrix_y - kLabelGap;
    if (labels.angle == 0) {
      put_text(b, labels.texts[i], style_of(b, labels, i), middle, foot, Align::kCenter);
      continue;
    }
    // The middle of the first letter's left edge stands over the middle of the column.
    const TextSize size = b.shaper.measure(labels.texts[i], labels.style);
    const double half = size.baseline - kHalfCapital * labels.style.size;
    b.figure.texts.push_back({labels.texts[i], style_of(b, labels, i), middle + std::sin(labels.angle) * half,
                              foot - std::cos(labels.angle) * half, labels.angle});
  }
}

namespace {

// A bar's end as a person would write it: whole numbers without decimals.
std::string end_text(float value, int decimals) {
  Matrix one(1, 1);
  one(0, 0) = value;
  return cell_text(value, decimals, all_integers(one));
}

std::vector<BarSpec> join_equal(const std::vector<BarSpec>& bars) {
  std::vector<BarSpec> joined;
  for (const BarSpec& bar : bars) {
    const auto same = std::ranges::find_if(joined, [&](const BarSpec& other) {
      return other.colormap == bar.colormap && other.range == bar.range && other.empty == bar.empty;
    });
    if (same == joined.end()) {
      joined.push_back(bar);
    } else {
      same->caption += ", " + bar.caption;
    }
  }
  return joined;
}

constexpr std::string_view kLogWord = "log";  // between the ends of a logarithmic scale

// Returns the width that was needed.
double put_bar(FigureSheet& b, const BarSpec& bar, double x, double y, double width) {
  const TextStyle style = caption_style(b);
  const bool captioned = !bar.caption.empty();
  const std::string low = end_text(bar.range.low * bar.factor, b.spec.look.decimals);
  const std::string high = end_text(bar.range.high * bar.factor, b.spec.look.decimals);
  const std::string single = bar.empty ? "no finite value" : "all " + low;
  const double low_width = text_width(b, low, style), high_width = text_width(b, high, style);
  const double between = bar.range.log ? text_width(b, kLogWord, style) + 32 : 16;
  const double needed = bar.range.flat ? text_width(b, single, style) : low_width + between + high_width;
  width = std::max({width, std::ceil(needed), captioned ? std::ceil(text_width(b, bar.caption, style)) : 0});
  if (captioned) put_text(b, bar.caption, style, x, y - kLabelGap);
  b.figure.bars.push_back({x, y, width, kBarHeight, bar.colormap, bar.range});
  const double baseline = y + kBarHeight + 16;
  if (bar.range.flat) {
    put_text(b, single, style, x + width / 2, baseline, Align::kCenter);
  } else {
    put_text(b, low, style, x, baseline);
    put_text(b, high, style, x + width, baseline, Align::kRight);
    const double middle = x + (low_width + width - high_width) / 2;
    if (bar.range.log) put_text(b, kLogWord, style, middle, baseline, Align::kCenter);
  }
  return width;
}

}  // namespace

double bar_room(const BarSpec& bar, double gap) { return bar.caption.empty() ? gap : gap + kCaptionLine; }

double put_bars(FigureSheet& b, const std::vector<BarSpec>& bars, double x, double y, double width) {
  for (const BarSpec& bar : join_equal(bars)) x += put_bar(b, bar, x, y, width) + kColumnGap;
  return y + kBarHeight + 20;
}

void put_head_dot(FigureSheet& b, int head, double x, double middle) {
  b.figure.rects.push_back({x, middle - 5, 10, 10, 5, head_color(head)});
  if (head_color_repeats(head)) b.figure.rects.push_back({x + 3, middle - 2, 4, 4, 2, b.colors.panel});
}

void put_head_band(FigureSheet& b, int head, double x, double y, double width, double height) {
  b.figure.rects.push_back({x, y, width, height, std::min({2.0, width / 2, height / 2}), head_color(head)});
  if (!head_color_repeats(head)) return;
  if (width > height) {
    b.figure.rects.push_back({x, y + height / 2 - 1, width, 2, 0, b.colors.stage});
  } else {
    b.figure.rects.push_back({x + width / 2 - 1, y, 2, height, 0, b.colors.stage});
  }
}

void put_headline(FigureSheet& b, std::string_view note, double x, double top) {
  TextStyle style = title_style(b);
  style.max_width = 480;
  const double baseline = top - 20;
  if (!b.session.title.empty()) x += std::ceil(put_text(b, b.session.title, style, x, baseline)) + 16;
  put_text(b, note, note_style(b), x, baseline);
}

std::string shape_text(Index rows, Index cols) { return std::to_string(rows) + " × " + std::to_string(cols); }

}  // namespace qkv
