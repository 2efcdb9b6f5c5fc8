// A comparison as a picture: ours, theirs and the difference of one matrix side by side, and what is to be said of it.
#pragma once

#include <string>

#include "core/figure/figure.h"
#include "core/session/compare.h"

namespace qkv {

// What is drawn. The matrices must outlive the figure.
struct ComparedMatrix {
  const Session& session;        // ours
  const Comparison& comparison;  // of it
  std::size_t array = 0;         // of the comparison
  int head = 0;                  // 0 for a mean and for a kind that exists once
  const Matrix& ours;
  const Matrix& theirs;
  std::string other;  // what theirs is called
};

// Which numbers there are: in ours and theirs, and in the difference.
struct ComparedExtents {
  FiniteExtent both, difference;
};
ComparedExtents compared_extents(const Matrix& ours, const Matrix& theirs, const Matrix& difference);

// Ours and theirs on one scale, the difference around 0, its numbers in units of 10^power.
struct ComparedLook {
  std::string colormap, difference_map;
  ColorRange range, difference_range;
  bool has_values = true, has_difference = true;  // finite ones
  int power = 0;
};
ComparedLook compared_look(const ViewSettings& look, MatrixKind kind, const ComparedExtents& extents);

// The cell size with which three heat maps of a matrix lie on a page: 1 … 40 pixels.
int compared_cell_px(Index rows, Index cols);

// With the cells, theme and look of `spec`; its view does not count. Errors: as layout_figure.
Result<Figure> layout_comparison(const ComparedMatrix& compared, const FigureSpec& spec, const TextShaper& shaper);

}  // namespace qkv
