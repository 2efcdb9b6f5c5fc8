#include "app/gl/heatmap_renderer.h"

#include <doctest/doctest.h>

#include <cfloat>
#include <cmath>

#include "tests/gl/support.h"

namespace qkv::test {
namespace {

HeatmapRenderer make_renderer(int texture_limit = 0) {
  Result<HeatmapRenderer> renderer = HeatmapRenderer::create(texture_limit);
  REQUIRE_MESSAGE(renderer.ok(), (renderer.ok() ? "" : renderer.error().message));
  return std::move(renderer).value();
}

// Every cell's centre against the table. Returns how many differ.
int wrong_cells(const PixelImage& image, const Scene& scene, float scale = 1) {
  int wrong = 0;
  for (int row = 0; row < scene.rows; ++row) {
    for (int col = 0; col < scene.cols; ++col) {
      const int drawn_row = scene.draw.transposed ? col : row, drawn_col = scene.draw.transposed ? row : col;
      const double x = scene.draw.min.x + (drawn_col + 0.5 - scene.draw.first_col) * scene.draw.cell_w;
      const double y = scene.draw.min.y + (drawn_row + 0.5 - scene.draw.first_row) * scene.draw.cell_h;
      if (x < scene.draw.min.x || x >= scene.draw.max.x || y < scene.draw.min.y || y >= scene.draw.max.y) continue;
      const Color got = pixel(image, static_cast<int>(x * scale), static_cast<int>(y * scale));
      wrong += got == expected_color(scene.draw, scene.value(row, col)) ? 0 : 1;
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("every cell of a random matrix has the colour of the table") {
  QKV_OPEN_CANVAS(canvas, 403, 301);
  HeatmapRenderer renderer = make_renderer();
  unsigned seed = 1;
  for (const ColormapInfo& map : colormaps()) {
    for (const ThemeName theme : {ThemeName::kLight, ThemeName::kDark}) {
      // Widths that are no multiple of four catch a wrong row alignment.
      Scene scene(13, 37, random_values(13 * 37, -2.5f, 3.5f, ++seed));
      scene.range(-2.5f, 3.5f).fit(10, 20, 9);
      scene.draw.version = seed;
      scene.draw.colormap = map.name;
      scene.draw.theme = theme;
      const PixelImage image = draw(*canvas, renderer, scene);
      CHECK_MESSAGE(wrong_cells(image, scene) == 0, map.name);
      CHECK(pixel(image, 9, 25) == kBackground);
      CHECK(pixel(image, 10 + 37 * 9, 25) == kBackground);
      CHECK(pixel(image, 15, 20 + 13 * 9) == kBackground);
    }
  }
}

TEST_CASE("rows are not mixed up whatever their length") {
  QKV_OPEN_CANVAS(canvas, 64, 64);
  HeatmapRenderer renderer = make_renderer();
  for (int cols = 1; cols <= 9; ++cols) {
    Scene scene(7, cols, random_values(7 * cols, 0, 1, static_cast<unsigned>(cols)));
    std::vector<float> keep(scene.values.size(), 1.0f);
    keep.back() = 0;
    scene.range(0, 1).fit(0, 0, 5).hide(keep);
    scene.draw.key = static_cast<std::uint64_t>(cols);
    const PixelImage image = draw(*canvas, renderer, scene);
    CHECK(wrong_cells(image, scene) == 1);  // the hidden one
  }
}

TEST_CASE("values at the borders of table entries take the upper entry") {
  QKV_OPEN_CANVAS(canvas, 257, 1);
  HeatmapRenderer renderer = make_renderer();
  std::vector<float> values;
  for (int i = 0; i <= 256; ++i) values.push_back(static_cast<float>(i) / 256);
  Scene scene(1, 257, values);
  scene.range(0, 1).fit(0, 0, 1);
  CHECK(wrong_cells(draw(*canvas, renderer, scene), scene) == 0);
}

TEST_CASE("a logarithmic scale has the colours of figures") {
  QKV_OPEN_CANVAS(canvas, 400, 20);
  HeatmapRenderer renderer = make_renderer();
  std::vector<float> values = {0, 1e-12F, 2};
  for (const float exponent : random_values(97, -6.5F, 0, 3)) values.push_back(std::pow(10.0F, exponent));
  Scene scene(1, 100, values);
  scene.range(1e-6F, 1).fit(0, 0, 4);
  scene.draw.range.log = true;
  const PixelImage image = draw(*canvas, renderer, scene);
  const ColorTable table = color_table("viridis", ThemeName::kLight);
  int wrong = 0;
  for (int i = 0; i < 100; ++i) {
    const CellClass cell = classify(values[static_cast<std::size_t>(i)], true, scene.draw.range);
    const double position = scene.draw.range.position(values[static_cast<std::size_t>(i)]);
    const int index = cell == CellClass::kBelow ? 0 : cell == CellClass::kAbove ? 255 : table_index(position);
    // A logarithm in float32 may end in the neighbouring entry, but not in that of zero.
    bool near = false;
    for (int k = std::max(std::min(index, 1), index - 1); k <= std::min(255, index == 0 ? 0 : index + 1); ++k)
      near = near || pixel(image, 4 * i + 2, 2) == table[static_cast<std::size_t>(k)];
    wrong += near ? 0 : 1;
  }
  CHECK(wrong == 0);
  CHECK(pixel(image, 2, 2) == table.front());
}

TEST_CASE("one hot cell in the upper left comes out in the upper left") {
  QKV_OPEN_CANVAS(canvas, 60, 40);
  HeatmapRenderer renderer = make_renderer();
  std::vector<float> values(24, 0.0f);
  values[0] = 1;
  Scene scene(4, 6, values);
  scene.range(0, 1).fit(0, 0, 10);
  const PixelImage image = draw(*canvas, renderer, scene);
  const ColorTable table = color_table("viridis", ThemeName::kLight);
  CHECK(pixel(image, 0, 0) == table.back());
  CHECK(pixel(image, 9, 9) == table.back());
  CHECK(pixel(image, 10, 0) == table.front());
  CHECK(pixel(image, 0, 10) == table.front());
  CHECK(pixel(image, 59, 39) == table.front());
  CHECK(pixel(image, 0, 39) == table.front());
}

TEST_CASE("a transposed matrix is drawn with rows as columns") {
  QKV_OPEN_CANVAS(canvas, 200, 200);
  HeatmapRenderer renderer = make_renderer();
  Scene scene(5, 11, random_values(55, -1, 1, 7));
  scene.draw.transposed = true;
  scene.range(-1, 1).fit(3, 4, 12);
  const PixelImage image = draw(*canvas, renderer, scene);
  CHECK(wrong_cells(image, scene) == 0);
  CHECK(pixel(image, 3 + 5 * 12, 10) == kBackground);  // five columns wide
}

TEST_CASE("panning and zooming by fractions keep cells in place") {
  QKV_OPEN_CANVAS(canvas, 240, 180);
  HeatmapRenderer renderer = make_renderer();
  Scene scene(40, 50, random_values(2000, 0, 1, 11));
  scene.range(0, 1);
  scene.draw.min = {17, 5};
  scene.draw.max = {217, 165};
  for (const double cell : {3.7, 9.25, 14.6, 61.0}) {
    for (const double first : {0.0, 0.3, 7.77, 12.5}) {
      scene.draw.cell_w = cell;
      scene.draw.cell_h = cell * 0.8;
      scene.draw.first_col = first;
      scene.draw.first_row = first * 1.1;
      CHECK(wrong_cells(draw(*canvas, renderer, scene), scene) == 0);
    }
  }
}

TEST_CASE("outside of the matrix nothing is drawn") {
  QKV_OPEN_CANVAS(canvas, 100, 100);
  HeatmapRenderer renderer = make_renderer();
  Scene scene(2, 2, {1, 1, 1, 1});
  scene.range(0, 1).fit(0, 0, 20);
  scene.draw.first_col = scene.draw.first_row = -1;
  scene.draw.max = {100, 100};
  const PixelImage image = draw(*canvas, renderer, scene);
  CHECK(pixel(image, 19, 30) == kBackground);
  CHECK(pixel(image, 30, 19) == kBackground);
  CHECK(pixel(image, 20, 20) == expected_color(scene.draw, 1));
  CHECK(pixel(image, 59, 59) == expected_color(scene.draw, 1));
  CHECK(pixel(image, 60, 59) == kBackground);
}

TEST_CASE("the clip rectangle cuts") {
  QKV_OPEN_CANVAS(canvas, 100, 100);
  HeatmapRenderer renderer = make_renderer();
  Scene scene(10, 10, std::vector<float>(100, 1.0f));
  scene.range(0, 1).fit(0, 0, 10);
  const PixelImage image = draw(*canvas, renderer, scene, 1, {20, 30, 60, 80});
  CHECK(pixel(image, 19, 50) == kBackground);
  CHECK(pixel(image, 20, 30) == expected_color(scene.draw, 1));
  CHECK(pixel(image, 59, 79) == expected_color(scene.draw, 1));
  CHECK(pixel(image, 60, 50) == kBackground);
  CHECK(pixel(image, 50, 29) == kBackground);
  CHECK(pixel(image, 50, 80) == kBackground);
}

TEST_CASE("scale 2 doubles every pixel") {
  QKV_OPEN_CANVAS(canvas, 240, 240);
  HeatmapRenderer renderer = make_renderer();
  Scene scene(7, 9, random_values(63, 0, 1, 3));
  scene.range(0, 1).fit(5, 6, 10);
  const PixelImage once = draw(*canvas, renderer, scene, 1);
  const PixelImage twice = draw(*canvas, renderer, scene, 2);
  int wrong = 0;
  for (int y = 0; y < 120; ++y)
    for (int x = 0; x < 120; ++x)
      for (int i = 0; i < 4; ++i) wrong += pixel(once, x, y) == pixel(twice, 2 * x + i % 2, 2 * y + i / 2) ? 0 : 1;
  CHECK(wrong == 0);
}

TEST_CASE("fractional scales keep the edges of a heat map sharp") {
  QKV_OPEN_CANVAS(canvas, 200, 200);
  HeatmapRenderer renderer = make_renderer();
  for (const float scale : {1.25f, 1.5f, 1.75f}) {
    Scene scene(3, 3, std::vector<float>(9, 1.0f));
    scene.range(0, 1).fit(11, 13, 30);
    const PixelImage image = draw(*canvas, renderer, scene, scale);
    const Color cell = expected_color(scene.draw, 1);
    for (int x = 0; x < 200; ++x) {
      const Color got = pixel(image, x, 100);
      CHECK((got == cell || got == kBackground));
    }
  }
}

TEST_CASE("a new version is uploaded, an old one is not") {
  QKV_OPEN_CANVAS(canvas, 40, 40);
  HeatmapRenderer renderer = make_renderer();
  Scene scene(2, 2, {0, 0, 0, 0});
  scene.range(0, 1).fit(0, 0, 20);
  draw(*canvas, renderer, scene);
  scene.values = {1, 1, 1, 1};
  CHECK(pixel(draw(*canvas, renderer, scene), 5, 5) == expected_color(scene.draw, 0));
  scene.draw.version = 2;
  CHECK(pixel(draw(*canvas, renderer, scene), 5, 5) == expected_color(scene.draw, 1));
  scene.draw.version = 3;
  scene.hide({0, 1, 1, 1});
  const PixelImage image = draw(*canvas, renderer, scene);
  CHECK(wrong_cells(image, scene) == 1);
  scene.draw.version = 4;
  scene.hide({});
  CHECK(wrong_cells(draw(*canvas, renderer, scene), scene) == 0);
  CHECK(renderer.matrix_count() == 1);
}

TEST_CASE("matrices that are not drawn are freed") {
  QKV_OPEN_CANVAS(canvas, 40, 40);
  HeatmapRenderer renderer = make_renderer();
  Scene scene(2, 2, {0, 1, 0, 1});
  scene.range(0, 1).fit(0, 0, 20);
  for (std::uint64_t key = 1; key <= 5; ++key) {
    scene.draw.key = key;
    draw(*canvas, renderer, scene);
  }
  CHECK(renderer.matrix_count() == 5);
  for (int frame = 0; frame < 200; ++frame) draw(*canvas, renderer, scene);
  CHECK(renderer.matrix_count() == 1);
}

TEST_CASE("cells smaller than a pixel show the mean") {
  QKV_OPEN_CANVAS(canvas, 64, 64);
  HeatmapRenderer renderer = make_renderer();
  // Four by four cells in each pixel.
  const int n = 256;
  Scene scene(n, n, random_values(n * n, 0, 1, 21));
  scene.range(0, 1).fit(0, 0, 0.25);
  const PixelImage image = draw(*canvas, renderer, scene);
  const ColorTable table = color_table("viridis", ThemeName::kLight);
  int wrong = 0;
  for (int y = 0; y < 64; ++y) {
    for (int x = 0; x < 64; ++x) {
      double sum = 0;
      for (int j = 0; j < 4; ++j)
        for (int i = 0; i < 4; ++i) sum += scene.value(4 * y + j, 4 * x + i);
      // Adding 16 float32 numbers may end in the neighbouring entry.
      const int index = table_index(sum / 16);
      bool near = false;
      for (int k = std::max(0, index - 1); k <= std::min(255, index + 1); ++k)
        near = near || pixel(image, x, y) == table[static_cast<std::size_t>(k)];
      wrong += near ? 0 : 1;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("one hundred thousand columns are addressed to the cell") {
  QKV_OPEN_CANVAS(canvas, 400, 20);
  HeatmapRenderer renderer = make_renderer();
  const int n = 100000;
  Scene scene(1, n, random_values(n, 0, 1, 5));
  scene.range(0, 1).fit(0, 0, 4);
  scene.draw.max = {400, 20};
  scene.draw.cell_h = 20;
  for (const double first : {0.0, 49999.5, 99900.0, 99950.25}) {
    scene.draw.first_col = first;
    const PixelImage image = draw(*canvas, renderer, scene);
    int wrong = 0;
    for (int x = 0; x < 400; ++x) {
      const int col = static_cast<int>(std::floor(first + (x + 0.5) / 4));
      wrong += pixel(image, x, 10) == (col < n ? expected_color(scene.draw, scene.value(0, col)) : kBackground) ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("matrices longer than a texture are folded, larger ones get a warning") {
  QKV_OPEN_CANVAS(canvas, 300, 300);
  HeatmapRenderer renderer = make_renderer(16);
  for (const auto& [rows, cols] : {std::pair{3, 37}, {37, 3}, {17, 15}, {1, 256}, {256, 1}}) {
    Scene scene(rows, cols, random_values(rows * cols, 0, 1, static_cast<unsigned>(rows)));
    scene.range(0, 1).fit(0, 0, cols > 100 || rows > 100 ? 1 : 5);
    scene.draw.key = static_cast<std::uint64_t>(rows);
    std::vector<float> keep(scene.values.size(), 1.0f);
    keep.back() = 0;
    scene.hide(keep);
    CHECK(wrong_cells(draw(*canvas, renderer, scene), scene) == 1);
  }
  Scene large(20, 20, random_values(400, 0, 1, 9));
  large.range(0, 1).fit(0, 0, 10);
  large.draw.key = 99;
  const PixelImage image = draw(*canvas, renderer, large);
  int warning = 0;
  for (int x = 0; x < 200; ++x)
    warning += difference(pixel(image, x, 100), palette(ThemeName::kLight).warning) < 8 ? 1 : 0;
  CHECK(warning > 20);
}

TEST_CASE("a range as wide as float32 does not overflow") {
  QKV_OPEN_CANVAS(canvas, 50, 10);
  HeatmapRenderer renderer = make_renderer();
  Scene scene(1, 5, {-FLT_MAX, -FLT_MAX / 2, 0, FLT_MAX / 2, FLT_MAX});
  scene.range(-FLT_MAX, FLT_MAX).fit(0, 0, 10);
  CHECK(wrong_cells(draw(*canvas, renderer, scene), scene) == 0);
}

TEST_CASE("nothing to draw is no error") {
  QKV_OPEN_CANVAS(canvas, 20, 20);
  HeatmapRenderer renderer = make_renderer();
  Scene scene(1, 1, {1});
  scene.range(0, 1).fit(0, 0, 10);
  scene.draw.rows = 0;
  CHECK(pixel(draw(*canvas, renderer, scene), 5, 5) == kBackground);
  scene.draw.rows = 1;
  scene.draw.cell_w = 0;
  CHECK(pixel(draw(*canvas, renderer, scene), 5, 5) == kBackground);
  scene.draw.cell_w = 10;
  CHECK(pixel(draw(*canvas, renderer, scene, 1, {30, 30, 40, 40}), 5, 5) == kBackground);
  scene.draw.colormap = "no such map";  // drawn in the usual one
  CHECK(pixel(draw(*canvas, renderer, scene), 5, 5) == color_table("viridis", ThemeName::kLight).back());
}

}  // namespace qkv::test
