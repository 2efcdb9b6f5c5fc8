#include "core/figure/paint_cells.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/figure/cell_image.h"

namespace qkv {
namespace {

constexpr int kBandPixels = 1 << 22;   // of a picture of pixels, prepared at once
constexpr int kMostImageSide = 32000;  // Cairo's images end at 32767
constexpr double kCornerRadius = 3;    // of the whole matrix
constexpr double kMinMarkedCell = 10;  // smallest cell with a mark for clipped values

double count(Index n) { return static_cast<double>(n); }

// The matrix on a canvas: where it begins, and how its cells become pixels.
struct CellGrid {
  double x = 0, y = 0;  // units
  CellPixels pixels;
  double unit = 1;  // of a pixel

  CanvasBox box(const CellBlock& block) const {
    const double left = pixels.left(block.first_col), top = pixels.top(block.first_row);
    return {x + left * unit, y + top * unit, (pixels.left(block.last_col) - left) * unit,
            (pixels.top(block.last_row) - top) * unit};
  }
};

// On pixels the matrix begins at a whole one. Elsewhere an image has as many pixels as units, or fewer where that would
// be too many, down to one a cell.
CellGrid grid_of(const FigureMatrix& m, double pixels_per_unit) {
  if (pixels_per_unit > 0) {
    return {std::round(m.x * pixels_per_unit) / pixels_per_unit, std::round(m.y * pixels_per_unit) / pixels_per_unit,
            cell_pixels(m, pixels_per_unit), 1 / pixels_per_unit};
  }
  const double most = std::sqrt(kMostImagePixels / (count(m.rows()) * count(m.cols())));
  const double side = std::clamp(std::floor(most), 1.0, std::max(1.0, m.cell_w));
  return {m.x, m.y, cell_pixels(m, side / m.cell_w), m.cell_w / side};
}

// The image is made in blocks, so that its memory stays small beside that of the figure, and within Cairo's limits.
void paint_image_cells(Canvas& canvas, const CellColors& look, const CellGrid& grid) {
  const FigureMatrix& m = look.matrix;
  const auto fitting = [](double pixels, double cell) { return std::max<Index>(1, static_cast<Index>(pixels / cell)); };
  const Index cols = std::min(m.cols(), fitting(kMostImageSide, grid.pixels.cell_w));
  Index rows = std::min(m.rows(), fitting(kMostImageSide, grid.pixels.cell_h));
  if (canvas.pixels_per_unit() > 0) {
    rows = std::min(rows, fitting(kBandPixels, grid.pixels.cell_h * grid.pixels.cell_w * count(cols)));
  }
  for (Index row = 0; row < m.rows(); row += rows) {
    for (Index col = 0; col < m.cols(); col += cols) {
      const CellBlock block{row, std::min(row + rows, m.rows()), col, std::min(col + cols, m.cols())};
      const CanvasBox box = grid.box(block);
      if (box.width > 0 && box.height > 0) canvas.paint_image(cell_image(look, grid.pixels, block), box);
    }
  }
}

// The same diagonals as on pixels: where column + row is a multiple of the period.
void paint_hatch(Canvas& canvas, const CellColors& look, const CanvasBox& box) {
  canvas.fill_rectangle(box, 0, look.colors.masked);
  std::vector<CanvasPolygon> stripes;
  for (double along = 0.5; along < box.width + box.height; along += kHatchPeriod) {
    const double left = box.x + along - box.height, right = box.x + along, bottom = box.y + box.height;
    stripes.push_back({{right, box.y}, {right + kHatchWidth, box.y}, {left + kHatchWidth, bottom}, {left, bottom}});
  }
  canvas.fill_polygons(stripes, look.colors.masked_line);
}

// One rectangle for each visible cell, over the hatch of the hidden ones. Each goes half a cell under those that are
// painted after it to its right and below: viewers that smooth edges then show no lines between them.
void paint_shape_cells(Canvas& canvas, const CellColors& look) {
  const FigureMatrix& m = look.matrix;
  if (m.keep != nullptr) paint_hatch(canvas, look, {m.x, m.y, m.cell_w * count(m.cols()), m.cell_h * count(m.rows())});
  const auto later = [&](Index row, Index col) { return row < m.rows() && col < m.cols() && m.visible(row, col); };
  for (Index row = 0; row < m.rows(); ++row) {
    for (Index col = 0; col < m.cols(); ++col) {
      const CellClass cell = look.class_of(row, col);
      if (cell == CellClass::kMasked) continue;
      const bool wider = later(row, col + 1);
      const bool taller = later(row + 1, col) && (!wider || later(row + 1, col + 1));
      canvas.fill_rectangle({m.x + count(col) * m.cell_w, m.y + count(row) * m.cell_h, m.cell_w * (wider ? 1.5 : 1),
                             m.cell_h * (taller ? 1.5 : 1)},
                            0, look.color_of(cell, m.value(row, col)));
    }
  }
}

// A small triangle in a right corner, above for values above the scale and below for those below it.
CanvasPolygon clip_mark(double x, double y, double w, double h, bool above) {
  const double size = std::clamp(std::floor(std::min(w, h) / 6), 3.0, 6.0);
  const double corner = above ? y + 1 : y + h - 1;
  const double inward = above ? size : -size;
  return {{x + w - 1, corner}, {x + w - 1 - size, corner}, {x + w - 1, corner + inward}};
}

// Writes numbers in the middle of cells; many cells have the same text.
class NumberPainter {
 public:
  NumberPainter(Canvas& canvas, const TextShaper& shaper) : canvas_(&canvas), shaper_(&shaper) {}

  void paint(const std::string& text, double size, Color ink, double middle_x, double middle_y) {
    const TextStyle style{.size = size, .bold = false, .color = ink};
    const auto [found, added] = sizes_.try_emplace(text);
    if (added) found->second = shaper_->measure(text, style);
    const TextSize& measured = found->second;
    const double baseline = std::round(middle_y + 0.364 * size);
    canvas_->write_text(text, style, {middle_x - measured.width / 2, baseline - measured.baseline, 0, 0.5, measured});
  }

 private:
  Canvas* canvas_;
  const TextShaper* shaper_;
  std::unordered_map<std::string, TextSize> sizes_;
};

void paint_marks(Canvas& canvas, const CellColors& look, const TextShaper& shaper) {
  const FigureMatrix& m = look.matrix;
  const bool marks = std::min(m.cell_w, m.cell_h) >= kMinMarkedCell;
  if (!marks && !m.numbers) return;
  NumberPainter numbers(canvas, shaper);
  for (Index row = 0; row < m.rows(); ++row) {
    for (Index col = 0; col < m.cols(); ++col) {
      const CellClass cell = look.class_of(row, col);
      if (cell == CellClass::kMasked) continue;
      const float value = m.value(row, col);
      const double x = m.x + count(col) * m.cell_w, y = m.y + count(row) * m.cell_h;
      const Color fill = look.color_of(cell, value);
      const Color ink = cell == CellClass::kNan ? look.colors.nan_ink : ink_on(fill);
      const bool above = cell == CellClass::kAbove || cell == CellClass::kPlusInf;
      const bool below = cell == CellClass::kBelow || cell == CellClass::kMinusInf;
      if (marks && (above || below)) {
        const CanvasPolygon mark = clip_mark(x, y, m.cell_w, m.cell_h, above);
        canvas.fill_polygons({&mark, 1}, ink);
      }
      if ((m.numbers || !std::isfinite(value)) && m.number_size > 0) {
        numbers.paint(m.number(row, col), m.number_size, ink, x + m.cell_w / 2, y + m.cell_h / 2);
      }
    }
  }
}

}  // namespace

void paint_matrix(Canvas& canvas, const FigureMatrix& matrix, ThemeName theme, const TextShaper& shaper) {
  const CellColors look(matrix, theme);
  const bool shapes = canvas.pixels_per_unit() == 0;
  const Index cells = matrix.rows() * matrix.cols();
  const CellGrid grid = grid_of(matrix, canvas.pixels_per_unit());
  const CanvasBox box = grid.box({0, matrix.rows(), 0, matrix.cols()});
  // Corners are cut only where a cell is much larger than the cut.
  const double radius = std::min(matrix.cell_w, matrix.cell_h) >= 8 ? kCornerRadius : 0;
  // The outline lies around the cells, not on them.
  canvas.fill_rectangle({box.x - 1, box.y - 1, box.width + 2, box.height + 2}, radius > 0 ? radius + 1 : 0,
                        look.colors.line);
  canvas.begin_clip(box, radius);
  if (shapes && cells <= kMostCellShapes) {
    paint_shape_cells(canvas, look);
  } else {
    paint_image_cells(canvas, look, grid);
  }
  canvas.end_clip();
  if (!shapes || cells <= kMostMarkedCells) paint_marks(canvas, look, shaper);
}

// Of a picture of pixels each has the colour of its middle; elsewhere each colour of the table has its share. The image
// is as high as the bar: viewers that smooth images fade its upper and lower edge into each other where it is one
// pixel.
void paint_bar(Canvas& canvas, const FigureBar& bar, ThemeName theme) {
  const ColorTable table = color_table(bar.colormap, theme);
  const double scale = canvas.pixels_per_unit();
  OpaqueImage image;
  image.width = std::max(1, scale > 0 ? static_cast<int>(bar.width * scale) : static_cast<int>(table.size()));
  image.height = std::max(1, static_cast<int>(bar.height));
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      image.pixels.push_back(opaque_pixel(table[static_cast<std::size_t>(table_index((x + 0.5) / image.width))]));
    }
  }
  const CanvasBox box{bar.x, bar.y, bar.width, bar.height};
  canvas.begin_clip(box, bar.height / 2);
  canvas.paint_image(image, box);
  canvas.end_clip();
}

}  // namespace qkv
