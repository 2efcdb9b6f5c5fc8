// Concat and W^O: the heads' outputs side by side in their colours, W^O above the output in matching bands.
#include <algorithm>
#include <cmath>

#include "core/figure/figure_parts.h"

namespace qkv {
namespace {

constexpr double kBand = 4;     // thickness of a head's band
constexpr double kBandGap = 6;  // between a band and its matrix

// "head 3", or "3", or every n-th number: whatever fits over a band.
void put_band_names(FigureBuilder& b, double band, double baseline) {
  const TextStyle style = caption_style(b);
  const int heads = b.trace.shapes.heads;
  const std::string last = std::to_string(heads);
  const bool whole = text_width(b, "head " + last, style) + 4 <= band;
  const int step = std::max(1, static_cast<int>(std::ceil((text_width(b, last, style) + 4) / band)));
  for (int head = 0; head < heads; head += whole ? 1 : step) {
    const std::string name = (whole ? "head " : "") + std::to_string(head + 1);
    put_text(b, name, style, (head + 0.5) * band, baseline, Align::kCenter);
  }
}

std::string subscript(int number) {
  std::string text;
  for (const char digit : std::to_string(number)) {
    constexpr const char* kDigits[] = {"₀", "₁", "₂", "₃", "₄", "₅", "₆", "₇", "₈", "₉"};
    text += kDigits[digit - '0'];
  }
  return text;
}

std::string formula(int heads, bool projected) {
  std::string inside = "head₁";
  if (heads == 2) inside += ", head₂";
  if (heads > 2) inside += " … head" + subscript(heads);
  return "Concat(" + inside + ")" + (projected ? "·Wᴼ" : "");
}

// W^O, its bands, and b^O stand above the output, whose corner is (x, 0). Returns the highest y in use.
double put_projection(FigureBuilder& b, double x) {
  const Shapes& n = b.trace.shapes;
  put_matrix(b, {MatrixKind::kOut, 0}, x, 0);
  put_title(b, title_of(b, {MatrixKind::kOut, 0}, {"Out", shape_text(n.nq, n.d_out)}), x, -kTitleRise);
  double top = -kTitleHeight - 16;
  if (b.trace.find({MatrixKind::kBo, 0}) != nullptr) {
    top -= b.cell();
    put_matrix(b, {MatrixKind::kBo, 0}, x, top);
    put_title(b, title_of(b, {MatrixKind::kBo, 0}, {"bᴼ", "added to every row"}), x, top - kTitleRise);
    top -= kTitleHeight + 16;
  }
  const double band = b.cell() * static_cast<double>(n.d_v);
  top -= band * n.heads;
  put_matrix(b, {MatrixKind::kWo, 0}, x, top);
  const Title title{"Wᴼ", shape_text(n.heads * n.d_v, n.d_out)};
  put_title(b, title_of(b, {MatrixKind::kWo, 0}, title), x, top - kTitleRise);
  const double inset = band >= 6 ? 1 : 0;
  for (int head = 0; head < n.heads; ++head) {
    put_head_band(b, head, x - kBandGap - kBand, top + head * band + inset, kBand, band - 2 * inset);
  }
  return top - kTitleHeight;
}

}  // namespace

Figure layout_concat_view(FigureBuilder b) {
  const Shapes& n = b.trace.shapes;
  const bool projected = b.trace.out.has_value();
  const double band = b.cell() * static_cast<double>(n.d_v);
  const double inset = band >= 6 ? 1 : 0;
  const Title title = title_of(b, {MatrixKind::kConcat, 0}, {"Concat", shape_text(n.nq, n.heads * n.d_v)});

  put_matrix(b, {MatrixKind::kConcat, 0}, 0, 0);
  const AxisLabels labels = row_labels(b, Axis::kQueries, n.nq);
  put_row_labels(b, labels, 0, 0);
  for (int head = 0; head < n.heads; ++head) {
    put_head_band(b, head, head * band + inset, -kBandGap - kBand, band - 2 * inset, kBand);
  }
  put_band_names(b, band, -kBandGap - kBand - 6);
  put_title(b, title, 0, -kBandGap - kBand - 24 - kTitleRise + 4);
  double top = -kBandGap - kBand - 20 - kTitleHeight;

  std::vector<BarSpec> bars = {bar_of(b, MatrixKind::kConcat, projected ? "Concat" : "")};
  if (projected) {
    const double width = std::max(band * n.heads, title_width(b, title));
    top = std::min(top, put_projection(b, std::ceil(width) + kColumnGap + 8));
    const bool biased = b.trace.find({MatrixKind::kBo, 0}) != nullptr;
    bars.push_back(bar_of(b, MatrixKind::kWo, biased ? "Wᴼ, bᴼ" : "Wᴼ"));
    bars.push_back(bar_of(b, MatrixKind::kOut, "Out"));
  }
  put_headline(b, with_lens(b, formula(n.heads, projected)), -labels.extent, top - 8);
  put_bars(b, bars, 0, b.cell() * static_cast<double>(n.nq) + (projected ? 48 : 24), 152);
  return finish(b);
}

}  // namespace qkv
