#include "tests/gl/support.h"

#include <doctest/doctest.h>
#include <glad/gl.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>

#include "app/gl/errors.h"
#include "app/gl/readback.h"

namespace qkv::test {

void Canvas::clear(Color color) const {
  glDisable(GL_SCISSOR_TEST);
  glViewport(0, 0, framebuffer.width, framebuffer.height);
  glClearColor(static_cast<float>(color.r) / 255, static_cast<float>(color.g) / 255, static_cast<float>(color.b) / 255,
               1);
  glClear(GL_COLOR_BUFFER_BIT);
}

PixelImage Canvas::read() const { return read_framebuffer(framebuffer.width, framebuffer.height); }

std::unique_ptr<Canvas> open_canvas(int width, int height) {
  setenv("LIBGL_ALWAYS_SOFTWARE", "1", 0);
  Result<EglContext> context = EglContext::create();
  if (!context) {
    std::cerr << "skipped: " << context.error().message << '\n';
    return nullptr;
  }
  Result<Framebuffer> framebuffer = create_framebuffer(width, height);
  REQUIRE(framebuffer.ok());
  glEnable(GL_BLEND);
  glBlendFuncSeparate(GL_SRC_ALPHA, GL_ONE_MINUS_SRC_ALPHA, GL_ONE, GL_ONE_MINUS_SRC_ALPHA);
  CHECK(take_gl_errors() == "");
  return std::make_unique<Canvas>(Canvas{std::move(context).value(), std::move(framebuffer).value()});
}

Color pixel(const PixelImage& image, int x, int y) {
  REQUIRE(x >= 0);
  REQUIRE(y >= 0);
  REQUIRE(x < image.width);
  REQUIRE(y < image.height);
  const std::uint8_t* p =
      &image.rgba[(static_cast<std::size_t>(y) * static_cast<std::size_t>(image.width) + static_cast<std::size_t>(x)) *
                  4];
  return {p[0], p[1], p[2], p[3]};
}

int difference(Color a, Color b) { return std::max({std::abs(a.r - b.r), std::abs(a.g - b.g), std::abs(a.b - b.b)}); }

Scene::Scene(int rows_, int cols_, std::vector<float> values_) : rows(rows_), cols(cols_), values(std::move(values_)) {
  draw.key = 1;
  draw.version = 1;
  draw.rows = rows;
  draw.cols = cols;
  draw.colormap = "viridis";
}

Scene& Scene::fit(float x, float y, double cell) {
  draw.min = {x, y};
  draw.max = {x + static_cast<float>((draw.transposed ? rows : cols) * cell),
              y + static_cast<float>((draw.transposed ? cols : rows) * cell)};
  draw.cell_w = draw.cell_h = cell;
  return *this;
}

Scene& Scene::range(float low, float high) {
  draw.range = {low, high, false};
  return *this;
}

Scene& Scene::hide(std::vector<float> keep_) {
  keep = std::move(keep_);
  return *this;
}

PixelImage draw(const Canvas& canvas, HeatmapRenderer& renderer, const Scene& scene, float scale) {
  const ImVec4 everything{0, 0, static_cast<float>(canvas.framebuffer.width),
                          static_cast<float>(canvas.framebuffer.height)};
  return draw(canvas, renderer, scene, scale, everything);
}

PixelImage draw(const Canvas& canvas, HeatmapRenderer& renderer, const Scene& scene, float scale, const ImVec4& clip) {
  canvas.clear(kBackground);
  HeatmapDraw heatmap = scene.draw;
  heatmap.values = scene.values.data();
  heatmap.keep = scene.keep.empty() ? nullptr : scene.keep.data();
  const ImVec2 display{static_cast<float>(canvas.framebuffer.width) / scale,
                       static_cast<float>(canvas.framebuffer.height) / scale};
  renderer.begin_frame(display, scale, canvas.framebuffer.height);
  CHECK(take_gl_errors() == "");
  renderer.draw(heatmap, clip);
  CHECK(take_gl_errors() == "");
  PixelImage image = canvas.read();
  CHECK(take_gl_errors() == "");
  return image;
}

std::vector<float> random_values(int count, float low, float high, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> distribution(low, high);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = distribution(engine);
  return values;
}

Color expected_color(const HeatmapDraw& draw, float value) {
  const ColorTable table = color_table(draw.colormap, draw.theme);
  return table[static_cast<std::size_t>(table_index(draw.range.position(value)))];
}

}  // namespace qkv::test
