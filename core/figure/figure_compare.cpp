#include "core/figure/figure_compare.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/figure/figure_parts.h"
#include "core/session/compare_words.h"

namespace qkv {
namespace {

constexpr double kMapSide = 480;  // pixels that a map of many cells takes at most, by compared_cell_px
constexpr double kBarWidth = 152;
constexpr double kWordsWidth = 560;  // lines of words break at this width, or that of the maps
constexpr double kWordLabel = 104;   // before what is said
constexpr double kLine = 20;

struct Map {
  Title title;
  const Matrix* values;
  const char* shows;
};

FigureMatrix& put_map(FigureSheet& b, const Map& map, const MatrixId& id, double x) {
  FigureMatrix matrix;
  matrix.id = id;
  matrix.shows = map.shows;
  matrix.values = map.values;
  matrix.x = x;
  matrix.cell_w = matrix.cell_h = b.cell();
  matrix.decimals = b.spec.look.decimals;
  b.figure.matrices.push_back(std::move(matrix));
  return b.figure.matrices.back();
}

// The three maps with their titles, labels and scales. Returns the y below them and the x at their right.
struct Used {
  double left = 0, top = 0, right = 0, bottom = 0;
};
Used put_maps(FigureSheet& b, const ComparedMatrix& of) {
  const Difference& found = of.comparison.differences[of.array];
  const Matrix& errors = found.errors[static_cast<std::size_t>(of.head)];
  const ComparedLook look = compared_look(b.spec.look, found.kind, compared_extents(of.ours, of.theirs, errors));
  const Index rows = errors.rows(), cols = errors.cols();
  const AxisLabels beside = row_labels(b, row_axis(found.kind), rows);
  const AxisLabels above = column_labels(b, col_axis(found.kind), cols);
  const std::string unit = title_unit(b, look.power);
  const std::array<Map, 3> maps = {
      Map{{"Ours", std::string(symbol(found.kind)) + " · " + shape_text(rows, cols)}, &of.ours, "ours"},
      Map{{"Theirs", ""}, &of.theirs, "theirs"}, Map{{"Theirs − ours" + unit, ""}, &errors, "difference"}};
  const BarSpec values{"ours, theirs", look.colormap, look.range, !look.has_values};
  const BarSpec around_zero{"theirs − ours" + unit_words(look.power), look.difference_map, look.difference_range,
                            !look.has_difference, unit_factor(look.power)};
  Used used{-beside.extent, -above.extent - kTitleHeight, 0, 0};
  const double bars = b.cell() * static_cast<double>(rows) + 40;
  double x = 0;
  for (const Map& map : maps) {
    FigureMatrix& matrix = put_map(b, map, {found.kind, of.head}, x);
    const bool is_difference = map.values == &errors;
    matrix.colormap = is_difference ? look.difference_map : look.colormap;
    matrix.range = is_difference ? look.difference_range : look.range;
    matrix.in_units = is_difference;
    if (is_difference) matrix.factor = unit_factor(look.power);
    put_column_labels(b, above, x, 0);
    put_title(b, map.title, x, -above.extent - kTitleRise);
    double width = std::max(b.cell() * static_cast<double>(cols), title_width(b, map.title));
    if (x == 0) put_row_labels(b, beside, 0, 0);
    if (x == 0 || is_difference) {
      used.bottom = put_bars(b, {is_difference ? around_zero : values}, x, bars, kBarWidth);
      if (is_difference) width = std::max(width, kBarWidth);
    }
    used.right = x + width;
    x += std::ceil(width) + kColumnGap;
  }
  return used;
}

struct Words {
  std::string label, text;
  bool bold = false;
};

std::vector<Words> words_of(const FigureSheet& b, const ComparedMatrix& of) {
  const Difference& found = of.comparison.differences[of.array];
  std::vector<Words> words = {{std::string(file_key(found.kind)), verdict_words(found)}};
  const TokenStyle tokens = token_style(b.session, b.spec.look);
  const auto add = [&](const char* label, const std::optional<CellDifference>& cell, bool with_size) {
    if (!cell) return;
    const std::string size = with_size ? error_text(std::abs(cell->error())) + " in " : "";
    words.push_back({label, size + place_words(b.session, found, cell->cell, tokens) + ": " + both_words(*cell)});
  };
  if (!found.equal()) {
    add("largest error", found.largest, true);
    add("first wrong", found.first_wrong, false);
  }
  words.push_back(
      {"", of.comparison.equal() ? "All that was compared is equal." : diagnosis_words(of.comparison).headline, true});
  return words;
}

// `text` in lines of at most `width`, broken at spaces. Returns the baseline of the last.
double put_paragraph(FigureSheet& b, const std::string& text, const TextStyle& style, double x, double baseline,
                     double width) {
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string longer = line + (line.empty() ? "" : " ") + text.substr(at, end - at);
    if (!line.empty() && text_width(b, longer, style) > width) {
      put_text(b, line, style, x, baseline);
      baseline += kLine;
      line = text.substr(at, end - at);
    } else {
      line = longer;
    }
    at = end + 1;
  }
  put_text(b, line, style, x, baseline);
  return baseline;
}

void put_words(FigureSheet& b, const ComparedMatrix& of, const Used& used) {
  TextStyle plain = note_style(b);
  plain.color = b.colors.text;
  const double width = std::max(kWordsWidth, used.right);
  double baseline = used.bottom + 32;
  for (const Words& each : words_of(b, of)) {
    const double x = each.label.empty() ? 0 : kWordLabel;
    put_text(b, each.label, note_style(b), 0, baseline);
    if (each.bold) baseline += 8;
    baseline = put_paragraph(b, each.text, each.bold ? title_style(b) : plain, x, baseline, width - x) + kLine;
  }
}

std::string headline_of(const ComparedMatrix& of) {
  const Difference& found = of.comparison.differences[of.array];
  std::string note;
  if (found.mean_of_heads) {
    note = "mean over the heads · ";
  } else if (found.errors.size() > 1) {
    note = "head " + std::to_string(of.head + 1) + " of " + std::to_string(found.errors.size()) + " · ";
  }
  return note + "against " + of.other;
}

Figure layout_with(const ComparedMatrix& of, const FigureSpec& spec, const TextShaper& shaper) {
  FigureSheet b = make_sheet(of.session, spec, shaper);
  const Used used = put_maps(b, of);
  put_headline(b, headline_of(of), std::round(used.left), used.top - 8);
  put_words(b, of, used);
  return finish(b);
}

}  // namespace

ComparedExtents compared_extents(const Matrix& ours, const Matrix& theirs, const Matrix& difference) {
  return {merge(finite_extent(ours), finite_extent(theirs)), finite_extent(difference)};
}

ComparedLook compared_look(const ViewSettings& look, MatrixKind kind, const ComparedExtents& extents) {
  const bool weights = is_weights(kind);
  const auto& [both, errors] = extents;
  return {weights ? look.weights_map : look.signed_map,
          look.signed_map,
          resolve_range(weights ? look.weights_range : look.signed_range, both),
          resolve_range({RangeMode::kSymmetric, -1, 1}, errors),
          both.count > 0,
          errors.count > 0,
          power_of(errors)};
}

int compared_cell_px(Index rows, Index cols) {
  return static_cast<int>(std::clamp(kMapSide / static_cast<double>(std::max(rows, cols)), 1.0, 40.0));
}

Result<Figure> layout_comparison(const ComparedMatrix& compared, const FigureSpec& spec, const TextShaper& shaper) {
  const Index cells = std::max(3 * compared.ours.cols(), compared.ours.rows());
  return layout_within_bounds(spec, cells,
                              [&](const FigureSpec& with_cell) { return layout_with(compared, with_cell, shaper); });
}

}  // namespace qkv
