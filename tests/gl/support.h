// What the OpenGL tests share: a context without a display, a picture to draw into, and ways to look at it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/gl/framebuffer.h"
#include "app/gl/heatmap_renderer.h"
#include "app/platform/egl_context.h"
#include "core/figure/colormap.h"
#include "core/figure/text.h"

namespace qkv::test {

// A context with a bound framebuffer of this size, blending set up as ImGui does.
struct Canvas {
  EglContext context;
  Framebuffer framebuffer;

  void clear(Color color) const;
  PixelImage read() const;
};
// nullptr, after saying why, where EGL or OpenGL 3.3 is missing: the test is then skipped.
std::unique_ptr<Canvas> open_canvas(int width, int height);

Color pixel(const PixelImage& image, int x, int y);
// Largest difference of a channel, alpha left out.
int difference(Color a, Color b);

// A matrix, its heat map of one pixel-aligned viewport at (x, y), and the picture.
struct Scene {
  int rows = 1, cols = 1;
  std::vector<float> values, keep;  // keep empty = all visible
  HeatmapDraw draw;

  Scene(int rows_, int cols_, std::vector<float> values_);
  // The whole matrix at (x, y), cells of `cell` logical pixels.
  Scene& fit(float x, float y, double cell);
  Scene& range(float low, float high);
  Scene& hide(std::vector<float> keep_);
  float value(int row, int col) const { return values[static_cast<std::size_t>(row * cols + col)]; }
};

// Clears to kBackground, draws with the whole picture as the clip, and checks that OpenGL found no error.
inline constexpr Color kBackground{1, 2, 3, 255};
PixelImage draw(const Canvas& canvas, HeatmapRenderer& renderer, const Scene& scene, float scale = 1);
PixelImage draw(const Canvas& canvas, HeatmapRenderer& renderer, const Scene& scene, float scale, const ImVec4& clip);

// Deterministic values in [low, high).
std::vector<float> random_values(int count, float low, float high, unsigned seed);

// The colour that the table gives a value, computed in float64 as figures do.
Color expected_color(const HeatmapDraw& draw, float value);

}  // namespace qkv::test

// Skips the rest of the test case without a context.
#define QKV_OPEN_CANVAS(name, width, height)               \
  const auto name = qkv::test::open_canvas(width, height); \
  if (name == nullptr) return
