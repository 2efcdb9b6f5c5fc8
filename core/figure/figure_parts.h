// What the layouts of all views are made of: titles, labels, colour bars, and a canvas that grows around them.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/figure/figure.h"

namespace qkv {

// Lengths in pixels. Everything lies on whole pixels, and distances are multiples of 4.
inline constexpr double kFigureMargin = 24;
inline constexpr double kLabelGap = 8;      // between labels and their matrix
inline constexpr double kTitleRise = 12;    // from a title's baseline to what it stands on
inline constexpr double kTitleHeight = 28;  // from a title's top to what it stands on
inline constexpr double kColumnGap = 40;    // between matrices side by side
inline constexpr double kMaxLabelWidth = 140;
inline constexpr double kBarHeight = 8;

// A figure in the making. Coordinates may be negative: finish() moves everything onto the canvas.
struct FigureSheet {
  const Session& session;
  const FigureSpec& spec;
  const TextShaper& shaper;
  const Palette& colors;
  Figure figure;

  double cell() const { return spec.cell_px; }
};
FigureSheet make_sheet(const Session& session, const FigureSpec& spec, const TextShaper& shaper);

// One of a trace.
struct FigureBuilder : FigureSheet {
  const Trace& trace;
  const LensCells* lens;                                                      // null = values
  std::array<std::optional<ColorRange>, kAllMatrixKinds.size()> scales = {};  // of the kinds that were asked for
};
FigureBuilder make_builder(const Session& session, const Trace& trace, const FigureSpec& spec, const TextShaper& shaper,
                           const LensCells* lens);

TextStyle title_style(const FigureSheet& b);    // 14, semibold
TextStyle note_style(const FigureSheet& b);     // 13, dim
TextStyle caption_style(const FigureSheet& b);  // 11, dim

enum class Align { kLeft, kCenter, kRight };
// `x` is the left end, middle or right end; `baseline` is where the letters stand. Returns the width.
double put_text(FigureSheet& b, std::string_view text, const TextStyle& style, double x, double baseline,
                Align align = Align::kLeft);
double text_width(const FigureSheet& b, std::string_view text, const TextStyle& style);
// Baseline of text whose capitals and digits are centred on `middle`.
double centered_baseline(double middle, double size);

// A symbol in bold and what there is to say about it, dim. Returns the width.
struct Title {
  std::string symbol, note;
};
double put_title(FigureSheet& b, const Title& title, double x, double baseline);
double title_width(const FigureSheet& b, const Title& title);

// Whether a lens is on that has this matrix.
bool has_lens(const FigureBuilder& b, MatrixId id);
// `title` of the matrix, or what a lens makes of it: its name, with the unit of the numbers in its cells, and its note.
Title title_of(const FigureBuilder& b, MatrixId id, Title title, bool transposed = false);
// " · 10⁻³" where numbers are written in its cells; empty for 0.
std::string title_unit(const FigureSheet& b, int power);
// `note` of a headline, with what the lens shows.
std::string with_lens(const FigureBuilder& b, std::string note);
// Numbers from 1 to 10, of some unit, have room in the cells.
bool has_room_for_units(const FigureSheet& b);

// view_range of a kind: in one figure all matrices of a kind have the same.
ColorRange scale_of(FigureBuilder& b, MatrixKind kind);

// The matrix with the map and range of its kind, or what the lens shows of it. `id` must exist in the trace.
FigureMatrix& put_matrix(FigureBuilder& b, MatrixId id, double x, double y, bool transposed = false);

// Labels along one side of a matrix, with what was decided to make them fit.
struct AxisLabels {
  std::vector<std::string> texts;  // one a row or column; empty = no labels
  std::vector<bool> special;       // drawn quieter; as many
  TextStyle style;
  Index first = 0;    // that is drawn
  Index step = 1;     // and every so many after it
  double angle = 0;   // radians, of column labels
  double extent = 0;  // pixels from the matrix outwards, gap included
};
AxisLabels row_labels(const FigureSheet& b, Axis axis, Index count);
AxisLabels column_labels(const FigureSheet& b, Axis axis, Index count);
void put_row_labels(FigureSheet& b, const AxisLabels& labels, double matrix_x, double matrix_y);
void put_column_labels(FigureSheet& b, const AxisLabels& labels, double matrix_x, double matrix_y);

// A colour bar with its end values below, "log" between them where it is logarithmic, or its single value where it is
// flat. Bars of one map and range become one, with their captions together. Returns the y below the last line.
struct BarSpec {
  std::string caption;  // what it is the scale of; may be empty
  std::string colormap;
  ColorRange range;
  bool empty = false;  // no finite value to show
  float factor = 1;    // what its ends are multiplied by before they are written
};
double put_bars(FigureSheet& b, const std::vector<BarSpec>& bars, double x, double y, double width);
// `gap`, and the line of the caption, which stands above the bar.
double bar_room(const BarSpec& bar, double gap);
BarSpec bar_of(FigureBuilder& b, MatrixKind kind, std::string caption);

// The colour of a head as a dot of 10 pixels or a band; heads whose colour was used before have a stripe.
void put_head_dot(FigureSheet& b, int head, double x, double middle);
void put_head_band(FigureSheet& b, int head, double x, double y, double width, double height);

// Headline of a view: the session's title and what is shown. `top` is the highest y in use.
void put_headline(FigureSheet& b, std::string_view note, double x, double top);

// Decides which cells have numbers, and fits the canvas around everything. The sheet is empty afterwards.
Figure finish(FigureSheet& b);

// Lays a figure out with the cells of a spec.
using FigureLayout = std::function<Figure(const FigureSpec&)>;
// With those of `spec` where the picture keeps within kMaxFigurePx and kMaxFigureArea. Errors: kBadInput, with the
// largest cell that fits. `least_cells` lie along its longer side: what cannot fit is not laid out.
Result<Figure> layout_within_bounds(const FigureSpec& spec, Index least_cells, const FigureLayout& layout);

std::string shape_text(Index rows, Index cols);  // "3 × 4"

// The views, each in its own file. The spec was checked.
Figure layout_matrix_view(FigureBuilder b);
Figure layout_head_view(FigureBuilder b);
Figure layout_heads_view(FigureBuilder b);
Figure layout_concat_view(FigureBuilder b);

}  // namespace qkv
