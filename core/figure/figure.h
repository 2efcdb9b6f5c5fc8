// A picture of a computation as data: where every matrix, label and colour bar goes.
#pragma once

#include <string>
#include <vector>

#include "core/attention/forward.h"
#include "core/figure/lens.h"
#include "core/figure/range.h"
#include "core/figure/text.h"
#include "core/session/session.h"

namespace qkv {

enum class FigureView { kMatrix, kHead, kHeads, kConcat };

struct FigureSpec {
  FigureView view = FigureView::kMatrix;
  MatrixId matrix = {MatrixKind::kAttn, 0};  // for kMatrix; `matrix.head` is the head of kHead too
  int cell_px = 32;                          // 1 … 256
  ThemeName theme = ThemeName::kLight;
  ViewSettings look;         // colour maps, ranges, decimals
  bool transparent = false;  // no background
  // Pixels a unit of the picture to be made, which bound its size; 0 for SVG and PDF, which are not made of pixels.
  double pixels_per_unit = 1;
};

// One heat map in a figure. Lengths in units, a unit being a pixel at scale 1; (x, y) the upper left corner of cell (0,
// 0).
struct FigureMatrix {
  MatrixId id;
  std::string shows;               // "theirs", "gradient", … ; empty = the trace's own values
  const Matrix* values = nullptr;  // transposed on paper where `transposed`
  const Matrix* keep = nullptr;    // where masking shows
  bool transposed = false;
  double x = 0, y = 0, cell_w = 0, cell_h = 0;
  std::string colormap;
  ColorRange range;
  bool numbers = false;    // written in the cells
  double number_size = 0;  // pixels; of NaN and ∞ too, which are written where they fit
  bool integers = false;   // all finite values are whole: written without decimals
  int decimals = 3;
  bool brief = false;     // those that would show only zeros have one digit
  bool in_units = false;  // numbers are written as multiples of 1 / `factor`; small ones beside large ones as 0
  float factor = 1;
  Index rows() const { return transposed ? values->cols() : values->rows(); }
  Index cols() const { return transposed ? values->rows() : values->cols(); }
  float value(Index row, Index col) const { return transposed ? (*values)(col, row) : (*values)(row, col); }
  bool visible(Index row, Index col) const { return keep == nullptr || (*keep)(row, col) != 0; }
  std::string number(Index row, Index col) const;  // as it is written
};

struct FigureText {
  std::string text;
  TextStyle style;
  double x = 0, y = 0;  // upper left corner
  double angle = 0;     // radians
  double anchor = 0;    // share of the width that lies before the point that stays where a viewer has other fonts
};

struct FigureBar {  // a colour bar
  double x = 0, y = 0, width = 0, height = 0;
  std::string colormap;
  ColorRange range;
};

struct FigureRect {  // filled, `radius` rounded corners
  double x = 0, y = 0, width = 0, height = 0, radius = 0;
  Color color;
};

struct Figure {
  double width = 0, height = 0;
  ThemeName theme = ThemeName::kLight;
  bool transparent = false;
  std::vector<FigureRect> rects;
  std::vector<FigureMatrix> matrices;
  std::vector<FigureText> texts;
  std::vector<FigureBar> bars;
};

// The values that share a colour scale with a matrix in a view. A matrix alone has its own scale. Elsewhere matrices
// in the same units share one over all heads, as in the window, so that equal colours mean equal values: A; S, ALiBi,
// B and scaled; Q, K, V and O; W^O and b^O. `head` is that of a matrix alone.
FiniteExtent view_extent(const Trace& trace, FigureView view, MatrixKind kind, int head);
// The colour scale of a matrix in a view: what `look` asks for over view_extent.
ColorRange view_range(const Trace& trace, const ViewSettings& look, FigureView view, MatrixKind kind, int head);
// Name of the colour map of a kind. The mask has no values to show: it takes the middle of the theme's map.
std::string view_colormap(const ViewSettings& look, MatrixKind kind);

// A figure draws every cell: kUnsupported for shapes whose N² matrices are too large to be held. To be asked before
// they are computed.
Status check_figure_size(const Shapes& shapes);

// Lays out what `spec` asks for, through `lens` where there is one, which was made of `trace`. Both must outlive the
// figure. Errors: kBadInput where the trace has no such matrix or head, or a picture of pixels would exceed
// kMaxFigurePx on a side or kMaxFigureArea (with the largest cell size that fits).
inline constexpr double kMaxFigurePx = 30000;
inline constexpr double kMaxFigureArea = 2.5e8;  // 1 GB of pixels
Result<Figure> layout_figure(const Session& session, const Trace& trace, const FigureSpec& spec,
                             const TextShaper& shaper, const LensCells* lens = nullptr);

// {"width", "height", "matrices": [{matrix, head, rows, cols, x, y, cell_w, cell_h, range, colormap}]} in pixels of the
// picture, `scale` of them a unit; "transposed" and "log" only where true, "shows" where the numbers are not the
// computation's own.
std::string layout_json(const Figure& figure, double scale = 1);

}  // namespace qkv
