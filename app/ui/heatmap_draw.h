// What the renderer needs to draw one heat map: plain data between panels and OpenGL.
#pragma once

#include <imgui.h>

#include <cstdint>
#include <string>

#include "core/figure/color.h"
#include "core/figure/range.h"

namespace qkv {

class HeatmapSink;

// One heat map of one frame. Lengths in logical pixels, the unit of ImGui's coordinates here.
// "Drawn" rows and columns are those on screen: of the transpose where `transposed`.
struct HeatmapDraw {
  std::uint64_t key = 0;          // which matrix: textures are kept by key
  std::uint64_t version = 0;      // changes whenever the values or the mask do
  const float* values = nullptr;  // [rows, cols] row-major, alive until the frame is rendered
  const float* keep = nullptr;    // [rows, cols], 1 = visible; nullptr = all visible
  int rows = 0, cols = 0;         // as stored
  bool transposed = false;
  ImVec2 min, max;                        // the viewport on screen
  double first_col = 0, first_row = 0;    // drawn cell coordinate at `min`, may be fractional
  double origin_col = 0, origin_row = 0;  // of the first cell in a larger matrix that this is a part of
  double cell_w = 1, cell_h = 1;          // size of a drawn cell
  std::string colormap;
  ThemeName theme = ThemeName::kLight;
  ColorRange range;
  float radius = 0;             // corner radius of the viewport
  HeatmapSink* sink = nullptr;  // who draws it; nullptr without a display
};

// Draws heat maps while ImGui's draw lists are rendered.
class HeatmapSink {
 public:
  virtual ~HeatmapSink() = default;
  // `clip` is ImGui's clip rectangle in logical pixels (x0, y0, x1, y1).
  virtual void draw(const HeatmapDraw& heatmap, const ImVec4& clip) = 0;
};

}  // namespace qkv
