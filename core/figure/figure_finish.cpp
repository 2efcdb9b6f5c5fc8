#include <algorithm>
#include <cmath>

#include "core/base/number_text.h"
#include "core/base/utf8.h"
#include "core/figure/cell_text.h"
#include "core/figure/figure_parts.h"

namespace qkv {
namespace {

constexpr double kMinNumber = 9, kMaxNumber = 22;  // font sizes of numbers in cells
constexpr double kNumberPadding = 2.5;             // pixels on each side of a number
constexpr int kFewDecimals = 1;                    // of numbers in units

// The longest number of a matrix; digits are tabular, so none is much wider.
std::string longest_number(const FigureMatrix& matrix) {
  std::string longest;
  std::size_t most = 0;
  for (Index r = 0; r < matrix.rows(); ++r) {
    for (Index c = 0; c < matrix.cols(); ++c) {
      if (!matrix.visible(r, c)) continue;
      std::string text = matrix.number(r, c);
      const std::size_t length = count_code_points(text);
      if (length <= most) continue;
      most = length;
      longest = std::move(text);
    }
  }
  return longest;
}

// Largest size at which `text` fits in a cell, or 0.
double fitting_size(const FigureSheet& b, const std::string& text, double cell_w, double cell_h) {
  const double largest = std::clamp(std::floor(cell_h * 0.32), kMinNumber, kMaxNumber);
  if (cell_h < kMinNumber + 3) return 0;
  for (double size = largest; size >= kMinNumber; --size) {
    const double width = text_width(b, text, {.size = size});
    if (width + 2 * kNumberPadding <= cell_w) return size;
  }
  return 0;
}

// Of the numbers of a matrix. To fit, those in units, which the size of the whole matrix has been taken out of, may
// lose digits down to kFewDecimals, and of others the smallest all but one.
double choose_size(const FigureSheet& b, FigureMatrix& matrix) {
  matrix.integers = matrix.factor == 1 && all_integers(*matrix.values);
  while (true) {
    const double size = fitting_size(b, longest_number(matrix), matrix.cell_w, matrix.cell_h);
    if (size > 0 || matrix.integers || matrix.brief) return size;
    if (!matrix.in_units) {
      matrix.brief = true;
    } else if (matrix.decimals > kFewDecimals) {
      --matrix.decimals;
    } else {
      return size;
    }
  }
}

// Numbers have one size throughout the figure; a matrix whose numbers don't fit has none. The mask has no numbers.
void choose_numbers(FigureSheet& b) {
  double common = kMaxNumber;
  for (FigureMatrix& matrix : b.figure.matrices) {
    matrix.number_size = std::min(fitting_size(b, "NaN", matrix.cell_w, matrix.cell_h), 13.0);
    if (matrix.cell_h < kMinNumber + 3 || (matrix.id.kind == MatrixKind::kKeep && matrix.shows.empty())) continue;
    double size = choose_size(b, matrix);
    // Its title names the unit: 9.99 rounded up to 10.0 does not take the numbers away again.
    if (size == 0 && matrix.factor != 1 && has_room_for_units(b)) size = kMinNumber;
    matrix.numbers = size > 0;
    if (matrix.numbers) common = std::min(common, size);
  }
  for (FigureMatrix& matrix : b.figure.matrices) {
    if (matrix.numbers) matrix.number_size = common;
  }
}

struct Box {
  double left = 1e300, top = 1e300, right = -1e300, bottom = -1e300;
  void add(double x, double y) {
    left = std::min(left, x);
    top = std::min(top, y);
    right = std::max(right, x);
    bottom = std::max(bottom, y);
  }
  void add(double x, double y, double width, double height) {
    add(x, y);
    add(x + width, y + height);
  }
};

Box bounds(const FigureSheet& b) {
  Box box;
  for (const FigureRect& rect : b.figure.rects) box.add(rect.x, rect.y, rect.width, rect.height);
  for (const FigureBar& bar : b.figure.bars) box.add(bar.x, bar.y, bar.width, bar.height);
  for (const FigureMatrix& m : b.figure.matrices) {
    box.add(m.x, m.y, m.cell_w * static_cast<double>(m.cols()), m.cell_h * static_cast<double>(m.rows()));
  }
  for (const FigureText& text : b.figure.texts) {
    const TextSize size = b.shaper.measure(text.text, text.style);
    const double cos = std::cos(text.angle), sin = std::sin(text.angle);
    for (const double dx : {0.0, size.width}) {
      for (const double dy : {0.0, size.height}) box.add(text.x + dx * cos - dy * sin, text.y + dx * sin + dy * cos);
    }
  }
  return box;
}

}  // namespace

bool has_room_for_units(const FigureSheet& b) {
  return fitting_size(b, format_fixed(-1, kFewDecimals), b.cell(), b.cell()) > 0;
}

Figure finish(FigureSheet& b) {
  choose_numbers(b);
  const Box box = bounds(b);
  const double dx = kFigureMargin - std::floor(box.left), dy = kFigureMargin - std::floor(box.top);
  const auto move = [&](auto& items) {
    for (auto& item : items) {
      item.x += dx;
      item.y += dy;
    }
  };
  move(b.figure.rects);
  move(b.figure.matrices);
  move(b.figure.texts);
  move(b.figure.bars);
  b.figure.width = std::ceil(box.right + dx + kFigureMargin);
  b.figure.height = std::ceil(box.bottom + dy + kFigureMargin);
  return std::move(b.figure);
}

}  // namespace qkv
