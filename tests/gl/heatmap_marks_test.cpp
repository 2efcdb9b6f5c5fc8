// Cells that are more than a value: masked, NaN, infinite, clipped, flat.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "tests/gl/support.h"

namespace qkv::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

using Pixels = std::vector<std::tuple<int, int, int>>;

// The pixels of one cell, in reading order.
Pixels cell_pixels(const PixelImage& image, int col, int cell) {
  Pixels pixels;
  for (int y = 0; y < cell; ++y) {
    for (int x = 0; x < cell; ++x) {
      const Color c = pixel(image, col * cell + x, y);
      pixels.emplace_back(c.r, c.g, c.b);
    }
  }
  return pixels;
}

std::size_t colors_in(const Pixels& pixels) { return std::set(pixels.begin(), pixels.end()).size(); }

// Low, high, below, above, −∞, +∞, NaN, masked.
Scene special_cells(double cell) {
  Scene scene(1, 8, {0, 1, -0.5f, 1.5f, -kInf, kInf, kNan, 0.5f});
  scene.range(0, 1).fit(0, 0, cell).hide({1, 1, 1, 1, 1, 1, 1, 0});
  return scene;
}

}  // namespace

TEST_CASE("special cells all look different") {
  QKV_OPEN_CANVAS(canvas, 8 * 40, 40);
  Result<HeatmapRenderer> renderer = HeatmapRenderer::create();
  REQUIRE(renderer.ok());
  std::uint64_t version = 0;
  for (const ColormapInfo& map : colormaps()) {
    for (const ThemeName theme : {ThemeName::kLight, ThemeName::kDark}) {
      for (const int cell : {10, 16, 40}) {
        Scene scene = special_cells(cell);
        scene.draw.version = ++version;
        scene.draw.colormap = map.name;
        scene.draw.theme = theme;
        const PixelImage image = draw(*canvas, renderer.value(), scene);
        std::vector<Pixels> cells;
        for (int i = 0; i < 8; ++i) cells.push_back(cell_pixels(image, i, cell));
        for (int i = 0; i < 8; ++i)
          for (int j = 0; j < i; ++j) CHECK_MESSAGE(cells[i] != cells[j], map.name, " ", i, " ", j);
        CHECK(colors_in(cells[0]) == 1);
        CHECK(colors_in(cells[1]) == 1);
        for (const int marked : {2, 3, 4, 5, 7}) CHECK_MESSAGE(colors_in(cells[marked]) > 1, map.name, " ", marked);
        CHECK(colors_in(cells[6]) == 1);
      }
    }
  }
}

TEST_CASE("NaN has a colour of its own, marks leave the middle of the cell free for digits") {
  QKV_OPEN_CANVAS(canvas, 8 * 40, 40);
  Result<HeatmapRenderer> renderer = HeatmapRenderer::create();
  REQUIRE(renderer.ok());
  for (const ThemeName theme : {ThemeName::kLight, ThemeName::kDark}) {
    const Color nan = palette(theme).nan_cell;
    for (const ColormapInfo& map : colormaps())
      for (const Color color : color_table(map.name, theme)) CHECK_MESSAGE(difference(nan, color) > 24, map.name);
    Scene scene = special_cells(40);
    scene.draw.theme = theme;
    const PixelImage image = draw(*canvas, renderer.value(), scene);
    const ColorTable table = color_table("viridis", theme);
    CHECK(pixel(image, 6 * 40 + 20, 20) == nan);
    CHECK(pixel(image, 2 * 40 + 20, 20) == table.front());
    CHECK(pixel(image, 3 * 40 + 20, 20) == table.back());
    CHECK(pixel(image, 4 * 40 + 20, 20) == table.front());
    CHECK(pixel(image, 5 * 40 + 20, 20) == table.back());
    // Below: lower left; above: upper right.
    CHECK(pixel(image, 2 * 40 + 1, 38) == ink_on(table.front()));
    CHECK(pixel(image, 3 * 40 + 38, 1) == ink_on(table.back()));
    CHECK(pixel(image, 3 * 40 + 1, 38) == table.back());
  }
}

TEST_CASE("small special cells differ from values, too") {
  QKV_OPEN_CANVAS(canvas, 8 * 5, 5);
  Result<HeatmapRenderer> renderer = HeatmapRenderer::create();
  REQUIRE(renderer.ok());
  const PixelImage image = draw(*canvas, renderer.value(), special_cells(5));
  CHECK(colors_in(cell_pixels(image, 4, 5)) == 2);
  CHECK(colors_in(cell_pixels(image, 5, 5)) == 2);
  CHECK(cell_pixels(image, 2, 5) == cell_pixels(image, 0, 5));  // clipped: no room for a mark
  CHECK(cell_pixels(image, 3, 5) == cell_pixels(image, 1, 5));
}

TEST_CASE("hidden cells are hatched whatever they hold") {
  QKV_OPEN_CANVAS(canvas, 120, 30);
  Result<HeatmapRenderer> renderer = HeatmapRenderer::create();
  REQUIRE(renderer.ok());
  Scene scene(1, 4, {0.5f, kNan, kInf, 7});
  scene.range(0, 1).fit(0, 0, 30).hide({0, 0, 0, 0});
  const PixelImage image = draw(*canvas, renderer.value(), scene);
  const Palette& colors = palette(ThemeName::kLight);
  int fill = 0, other = 0;
  for (int x = 0; x < 120; ++x) {
    const Color got = pixel(image, x, 15);
    fill += got == colors.masked ? 1 : 0;
    // Between the fill and the line in every channel.
    const bool between = got.r <= colors.masked.r && got.r >= colors.masked_line.r;
    other += between ? 0 : 1;
  }
  CHECK(fill > 40);
  CHECK(fill < 110);
  CHECK(other == 0);
}

TEST_CASE("a flat matrix is drawn in mid-scale") {
  QKV_OPEN_CANVAS(canvas, 60, 20);
  Result<HeatmapRenderer> renderer = HeatmapRenderer::create();
  REQUIRE(renderer.ok());
  Scene scene(1, 3, {4, 4, kNan});
  scene.fit(0, 0, 20);
  scene.draw.range = {4, 4, true};
  const PixelImage image = draw(*canvas, renderer.value(), scene);
  CHECK(pixel(image, 10, 10) == color_table("viridis", ThemeName::kLight)[128]);
  CHECK(pixel(image, 50, 10) == palette(ThemeName::kLight).nan_cell);
}

TEST_CASE("one NaN among cells smaller than a pixel shows, a masked one pales") {
  QKV_OPEN_CANVAS(canvas, 8, 8);
  Result<HeatmapRenderer> renderer = HeatmapRenderer::create();
  REQUIRE(renderer.ok());
  const int n = 32;  // four by four cells a pixel
  Scene scene(n, n, std::vector<float>(n * n, 1.0f));
  scene.values[5 * n + 5] = kNan;
  scene.range(0, 1).fit(0, 0, 0.25);
  std::vector<float> keep(n * n, 1.0f);
  for (int row = 16; row < 20; ++row)
    for (int col = 16; col < 18; ++col) keep[static_cast<std::size_t>(row * n + col)] = 0;
  scene.hide(keep);
  const PixelImage image = draw(*canvas, renderer.value(), scene);
  const Color full = expected_color(scene.draw, 1);
  CHECK(pixel(image, 1, 1) == palette(ThemeName::kLight).nan_cell);
  CHECK(pixel(image, 0, 0) == full);
  const Palette& colors = palette(ThemeName::kLight);
  const Color half = pixel(image, 4, 4);
  CHECK(std::min(difference(half, mix(full, colors.masked, 0.5)),
                 difference(half, mix(full, colors.masked_line, 0.5))) < 32);
  CHECK(half != full);
}

TEST_CASE("rounded corners let the background through") {
  QKV_OPEN_CANVAS(canvas, 60, 60);
  Result<HeatmapRenderer> renderer = HeatmapRenderer::create();
  REQUIRE(renderer.ok());
  Scene scene(1, 1, {1});
  scene.range(0, 1).fit(10, 10, 40);
  scene.draw.radius = 8;
  const PixelImage image = draw(*canvas, renderer.value(), scene);
  const Color cell = expected_color(scene.draw, 1);
  for (const auto& [x, y] : {std::pair{10, 10}, {49, 10}, {10, 49}, {49, 49}}) CHECK(pixel(image, x, y) == kBackground);
  for (const auto& [x, y] : {std::pair{30, 10}, {10, 30}, {49, 30}, {30, 49}, {30, 30}})
    CHECK(pixel(image, x, y) == cell);
}

}  // namespace qkv::test
