#include "core/figure/paint_cells.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <unordered_map>

#include "core/figure/cell_text.h"

namespace qkv {
namespace {

constexpr int kHatchPeriod = 6;        // pixels between the lines on hidden cells
constexpr int kBandPixels = 1 << 22;   // pixels that are prepared at once
constexpr double kCornerRadius = 3;    // of the whole matrix
constexpr double kMinMarkedCell = 10;  // smallest cell with a mark for clipped values

struct SurfaceDeleter {
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
};
using SurfacePtr = std::unique_ptr<cairo_surface_t, SurfaceDeleter>;

std::uint32_t argb(Color c) {
  return std::uint32_t{0xff} << 24 | std::uint32_t{c.r} << 16 | std::uint32_t{c.g} << 8 | std::uint32_t{c.b};
}

// Everything that the colour of a cell depends on.
struct CellColors {
  const FigureMatrix& matrix;
  const Palette& colors;
  ColorTable table;

  CellColors(const FigureMatrix& m, ThemeName theme)
      : matrix(m), colors(palette(theme)), table(color_table(m.colormap, theme)) {}

  CellClass class_of(Index row, Index col) const {
    return classify(matrix.value(row, col), matrix.visible(row, col), matrix.range);
  }
  Color color_of(CellClass cell, float value) const {
    switch (cell) {
      case CellClass::kMasked:
        return colors.masked;
      case CellClass::kNan:
        return colors.nan_cell;
      case CellClass::kBelow:
      case CellClass::kMinusInf:
        return table.front();
      case CellClass::kAbove:
      case CellClass::kPlusInf:
        return table.back();
      case CellClass::kValue:
        break;
    }
    return table[static_cast<std::size_t>(table_index(matrix.range.position(value)))];
  }
};

// Fills `height` pixel rows of one row of cells. `top` is the first pixel row within the matrix: the hatch runs on
// across cells.
void fill_cell_row(const CellColors& look, Index row, int cell_w, int height, int top, std::uint32_t* pixels,
                   std::ptrdiff_t stride) {
  const Index cols = look.matrix.cols();
  for (Index col = 0; col < cols; ++col) {
    const CellClass cell = look.class_of(row, col);
    const std::uint32_t fill = argb(look.color_of(cell, look.matrix.value(row, col)));
    const std::uint32_t line = argb(look.colors.masked_line);
    const int left = static_cast<int>(col) * cell_w;
    for (int y = 0; y < height; ++y) {
      std::uint32_t* out = pixels + y * stride + left;
      if (cell != CellClass::kMasked) {
        std::fill_n(out, cell_w, fill);
        continue;
      }
      for (int x = 0; x < cell_w; ++x) out[x] = (left + x + top + y) % kHatchPeriod == 0 ? line : fill;
    }
  }
}

void paint_surface(cairo_t* cr, cairo_surface_t* surface, double x, double y) {
  cairo_set_source_surface(cr, surface, x, y);
  cairo_pattern_set_filter(cairo_get_source(cr), CAIRO_FILTER_NEAREST);
  cairo_paint(cr);
}

// The picture is made in bands of whole rows of cells, so that its memory stays small beside that of the figure.
void paint_fills(cairo_t* cr, const CellColors& look) {
  const FigureMatrix& m = look.matrix;
  const int cell_w = std::max(1, static_cast<int>(m.cell_w)), cell_h = std::max(1, static_cast<int>(m.cell_h));
  const int width = static_cast<int>(m.cols()) * cell_w;
  const Index band = std::clamp<Index>(kBandPixels / std::max(1, width * cell_h), 1, m.rows());
  for (Index first = 0; first < m.rows(); first += band) {
    const Index count = std::min(band, m.rows() - first);
    const SurfacePtr surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, static_cast<int>(count) * cell_h));
    if (cairo_surface_status(surface.get()) != CAIRO_STATUS_SUCCESS) return;
    auto* pixels = reinterpret_cast<std::uint32_t*>(cairo_image_surface_get_data(surface.get()));
    const std::ptrdiff_t stride = cairo_image_surface_get_stride(surface.get()) / 4;
    for (Index r = 0; r < count; ++r) {
      fill_cell_row(look, first + r, cell_w, cell_h, static_cast<int>(first + r) * cell_h, pixels + r * cell_h * stride,
                    stride);
    }
    cairo_surface_mark_dirty(surface.get());
    paint_surface(cr, surface.get(), m.x, m.y + static_cast<double>(first) * cell_h);
  }
}

// A small triangle in a right corner, above for values above the scale and below for those below it.
void paint_clip_mark(cairo_t* cr, double x, double y, double w, double h, bool above, Color ink) {
  const double size = std::clamp(std::floor(std::min(w, h) / 6), 3.0, 6.0);
  const double corner = above ? y + 1 : y + h - 1;
  const double inward = above ? size : -size;
  cairo_move_to(cr, x + w - 1, corner);
  cairo_line_to(cr, x + w - 1 - size, corner);
  cairo_line_to(cr, x + w - 1, corner + inward);
  cairo_close_path(cr);
  set_color(cr, ink);
  cairo_fill(cr);
}

// Writes numbers in the middle of cells; many cells have the same text.
class NumberPainter {
 public:
  NumberPainter(cairo_t* cr, const TextShaper& shaper) : cr_(cr), shaper_(&shaper) {}

  void paint(const std::string& text, double size, Color ink, double middle_x, double middle_y) {
    const TextStyle style{.size = size, .bold = false, .color = ink};
    const auto [found, added] = sizes_.try_emplace(text);
    if (added) found->second = shaper_->measure(text, style);
    const TextSize& measured = found->second;
    const double baseline = std::round(middle_y + 0.364 * size);
    shaper_->draw(cr_, text, style, middle_x - measured.width / 2, baseline - measured.baseline);
  }

 private:
  cairo_t* cr_;
  const TextShaper* shaper_;
  std::unordered_map<std::string, TextSize> sizes_;
};

void paint_marks(cairo_t* cr, const CellColors& look, int decimals, const TextShaper& shaper) {
  const FigureMatrix& m = look.matrix;
  const bool marks = std::min(m.cell_w, m.cell_h) >= kMinMarkedCell;
  if (!marks && !m.numbers) return;
  NumberPainter numbers(cr, shaper);
  for (Index row = 0; row < m.rows(); ++row) {
    for (Index col = 0; col < m.cols(); ++col) {
      const CellClass cell = look.class_of(row, col);
      if (cell == CellClass::kMasked) continue;
      const float value = m.value(row, col);
      const double x = m.x + static_cast<double>(col) * m.cell_w, y = m.y + static_cast<double>(row) * m.cell_h;
      const Color fill = look.color_of(cell, value);
      const Color ink = cell == CellClass::kNan ? look.colors.nan_ink : ink_on(fill);
      const bool above = cell == CellClass::kAbove || cell == CellClass::kPlusInf;
      const bool below = cell == CellClass::kBelow || cell == CellClass::kMinusInf;
      if (marks && (above || below)) paint_clip_mark(cr, x, y, m.cell_w, m.cell_h, above, ink);
      if ((m.numbers || !std::isfinite(value)) && m.number_size > 0) {
        numbers.paint(cell_text(value, decimals, m.integers), m.number_size, ink, x + m.cell_w / 2, y + m.cell_h / 2);
      }
    }
  }
}

}  // namespace

void set_color(cairo_t* cr, Color color) {
  cairo_set_source_rgba(cr, color.r / 255.0, color.g / 255.0, color.b / 255.0, color.a / 255.0);
}

void rounded_rectangle(cairo_t* cr, double x, double y, double width, double height, double radius) {
  const double r = std::min({radius, width / 2, height / 2});
  if (r <= 0) {
    cairo_rectangle(cr, x, y, width, height);
    return;
  }
  constexpr double kQuarter = std::numbers::pi / 2;
  cairo_new_sub_path(cr);
  cairo_arc(cr, x + width - r, y + r, r, -kQuarter, 0);
  cairo_arc(cr, x + width - r, y + height - r, r, 0, kQuarter);
  cairo_arc(cr, x + r, y + height - r, r, kQuarter, 2 * kQuarter);
  cairo_arc(cr, x + r, y + r, r, 2 * kQuarter, 3 * kQuarter);
  cairo_close_path(cr);
}

void paint_matrix(cairo_t* cr, const FigureMatrix& matrix, ThemeName theme, int decimals, const TextShaper& shaper) {
  const CellColors look(matrix, theme);
  const double width = matrix.cell_w * static_cast<double>(matrix.cols());
  const double height = matrix.cell_h * static_cast<double>(matrix.rows());
  // Corners are cut only where a cell is much larger than the cut.
  const double radius = std::min(matrix.cell_w, matrix.cell_h) >= 8 ? kCornerRadius : 0;
  cairo_save(cr);
  // The outline lies around the cells, not on them.
  rounded_rectangle(cr, matrix.x - 1, matrix.y - 1, width + 2, height + 2, radius > 0 ? radius + 1 : 0);
  set_color(cr, look.colors.line);
  cairo_fill(cr);
  rounded_rectangle(cr, matrix.x, matrix.y, width, height, radius);
  cairo_clip(cr);
  paint_fills(cr, look);
  cairo_restore(cr);
  paint_marks(cr, look, decimals, shaper);
}

void paint_bar(cairo_t* cr, const FigureBar& bar, ThemeName theme) {
  const ColorTable table = color_table(bar.colormap, theme);
  const int width = std::max(1, static_cast<int>(bar.width));
  const SurfacePtr surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, 1));
  if (cairo_surface_status(surface.get()) != CAIRO_STATUS_SUCCESS) return;
  auto* pixels = reinterpret_cast<std::uint32_t*>(cairo_image_surface_get_data(surface.get()));
  for (int x = 0; x < width; ++x) pixels[x] = argb(table[static_cast<std::size_t>(table_index((x + 0.5) / width))]);
  cairo_surface_mark_dirty(surface.get());
  cairo_save(cr);
  rounded_rectangle(cr, bar.x, bar.y, bar.width, bar.height, bar.height / 2);
  cairo_clip(cr);
  cairo_translate(cr, bar.x, bar.y);
  cairo_scale(cr, 1, bar.height);
  paint_surface(cr, surface.get(), 0, 0);
  cairo_restore(cr);
}

}  // namespace qkv
