// How large a figure may be.
#include <optional>

#include "core/base/number_text.h"
#include "core/figure/figure_parts.h"

namespace qkv {
namespace {

bool fits(const Figure& figure, double pixels_per_unit) {
  const double width = figure.width * pixels_per_unit, height = figure.height * pixels_per_unit;
  return width <= kMaxFigurePx && height <= kMaxFigurePx && width * height <= kMaxFigureArea;
}

// The figure, or nullopt where it would be too large: labels of a huge matrix take long to measure.
std::optional<Figure> try_cell(FigureSpec spec, int cell_px, Index least_cells, const FigureLayout& layout) {
  spec.cell_px = cell_px;
  if (static_cast<double>(least_cells) * cell_px * spec.pixels_per_unit > kMaxFigurePx) return std::nullopt;
  Figure figure = layout(spec);
  if (!fits(figure, spec.pixels_per_unit)) return std::nullopt;
  return figure;
}

Error too_large(const FigureSpec& spec, Index least_cells, const FigureLayout& layout) {
  int fitting = 0;
  for (int low = 1, high = spec.cell_px - 1; low <= high;) {
    const int middle = (low + high) / 2;
    if (try_cell(spec, middle, least_cells, layout)) {
      fitting = middle;
      low = middle + 1;
    } else {
      high = middle - 1;
    }
  }
  const bool scaled = spec.pixels_per_unit != 1;
  const std::string start = "the picture is too large with cells of " + std::to_string(spec.cell_px) + " pixels" +
                            (scaled ? " at scale " + format_shortest(spec.pixels_per_unit) : "") + "; ";
  if (fitting == 0) {
    return bad_input(start + "even cells of 1 pixel do not fit: choose a smaller " + (scaled ? "scale" : "matrix"));
  }
  return bad_input(start + "the largest cell size that fits is " + std::to_string(fitting));
}

}  // namespace

Result<Figure> layout_within_bounds(const FigureSpec& spec, Index least_cells, const FigureLayout& layout) {
  std::optional<Figure> figure = try_cell(spec, spec.cell_px, least_cells, layout);
  if (!figure) return too_large(spec, least_cells, layout);
  return std::move(*figure);
}

}  // namespace qkv
