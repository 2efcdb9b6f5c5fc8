#include "app/panels/fit.h"

#include <algorithm>
#include <cmath>

namespace qkv {
namespace {

// Cells of this size and more set an axis's length by themselves; below, kSmallestSide keeps it readable.
constexpr double kFullCell = 12;
constexpr double kLine = 22;  // of text

double natural_length(Index count, double cell) {
  const double n = static_cast<double>(count);
  if (cell >= kFullCell) return n * cell;
  return std::max(n * cell, std::min(n * kFullCell, static_cast<double>(kSmallestSide)));
}

}  // namespace

float AxisFit::length(Index count) const { return static_cast<float>(natural_length(count, cell) * shrink); }

AxisFit fit_axes(std::span<const Index> counts, float room) {
  const auto total = [&](double cell) {
    double sum = 0;
    for (const Index count : counts) sum += natural_length(count, cell);
    return sum;
  };
  if (total(kLargestCell) <= room) return {kLargestCell, 1};
  double low = 1e-3, high = kLargestCell;
  if (total(low) > room) return {low, std::max(1.0, static_cast<double>(room)) / total(low)};
  for (int step = 0; step < 50; ++step) {
    const double middle = (low + high) / 2;
    (total(middle) <= room ? low : high) = middle;
  }
  return {low, 1};
}

CellSize fit_cells(Index rows, Index cols, float room_w, float room_h, double most) {
  const double across = static_cast<double>(room_w) / static_cast<double>(cols);
  const double down = static_cast<double>(room_h) / static_cast<double>(rows);
  const double cell = std::min({across, down, most});
  const bool is_strip = std::max(rows, cols) > 4 * std::min(rows, cols);
  const auto side = [&](double room) {
    return room < kLine && !is_strip ? cell : std::max(cell, std::min(room, kLine));
  };
  return {side(across), side(down)};
}

void square_cells(AxisFit& across, AxisFit& down) {
  if (across.shrink < 1 || down.shrink < 1) return;
  const double cell = std::min(across.cell, down.cell), high = down.cell;
  if (cell < kFullCell) return;
  across.cell = down.cell = std::floor(cell);
  // Rows narrower than a line of text grow towards one, so that every token has its label.
  if (cell < kLine) down.cell = std::floor(std::min(kLine, high));
}

}  // namespace qkv
