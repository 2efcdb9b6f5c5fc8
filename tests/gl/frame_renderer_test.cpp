// Whole ImGui frames: text, pictures and heat maps through the renderer that the window uses.
#include "app/gl/frame_renderer.h"

#include <doctest/doctest.h>

#include <cmath>

#include "app/gl/errors.h"
#include "app/gl/pixel_snap.h"
#include "app/platform/imgui_compat.h"
#include "app/ui/fonts.h"
#include "tests/gl/support.h"

namespace qkv::test {
namespace {

void draw_heatmap(const ImDrawList*, const ImDrawCmd* command) {
  const auto* heatmap = static_cast<const HeatmapDraw*>(command->UserCallbackData);
  heatmap->sink->draw(*heatmap, command->ClipRect);
}

struct ImGuiHere {
  ImGuiHere() {
    ImGui::CreateContext();
    ImGui::GetIO().IniFilename = nullptr;
  }
  ~ImGuiHere() { ImGui::DestroyContext(); }
};

// A canvas, ImGui, and its renderer; frames of one background draw list.
struct Stage {
  std::unique_ptr<Canvas> canvas;
  ImGuiHere imgui;
  std::unique_ptr<FrameRenderer> renderer;
  FontSet fonts;
  float scale = 1;

  explicit Stage(std::unique_ptr<Canvas> opened) : canvas(std::move(opened)) {
    Result<std::unique_ptr<FrameRenderer>> made = FrameRenderer::create();
    REQUIRE(made.ok());
    renderer = std::move(made).value();
  }

  template <class Draw>
  PixelImage frame(Draw draw_into) {
    const bool rebuilt = fonts.needs_build(scale);
    if (rebuilt) fonts.build(scale);
    renderer->begin_frame(rebuilt);
    compat::set_display(ImGui::GetIO(), canvas->framebuffer.width, canvas->framebuffer.height, scale);
    ImGui::GetIO().DeltaTime = 1.0f / 60;
    ImGui::NewFrame();
    draw_into(*ImGui::GetBackgroundDrawList());
    ImGui::Render();
    renderer->render(canvas->framebuffer.width, canvas->framebuffer.height, kBackground);
    CHECK(take_gl_errors() == "");
    return canvas->read();
  }
};

// A chequer of one-pixel squares: any blur shows.
PixelImage chequer(int width, int height) {
  PixelImage image{width, height, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const std::uint8_t c = (x + y) % 2 == 0 ? 255 : 0;
      image.rgba.insert(image.rgba.end(), {c, c, c, 255});
    }
  return image;
}

bool is_sharp_chequer(const PixelImage& image, int left, int top, int width, int height) {
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const Color want = (x + y) % 2 == 0 ? Color{255, 255, 255, 255} : Color{0, 0, 0, 255};
      if (difference(pixel(image, left + x, top + y), want) > 2) return false;
    }
  return true;
}

}  // namespace

TEST_CASE("a heat map between shapes, and ImGui goes on afterwards") {
  auto canvas = open_canvas(200, 120);
  if (canvas == nullptr) return;
  Stage stage(std::move(canvas));
  Scene scene(2, 2, {0, 1, 1, 0});
  scene.range(0, 1).fit(20, 20, 30);
  scene.draw.values = scene.values.data();
  scene.draw.sink = &stage.renderer->heatmaps();
  for (int frame = 0; frame < 3; ++frame) {
    const PixelImage image = stage.frame([&](ImDrawList& list) {
      list.AddRectFilled({10, 10}, {90, 90}, IM_COL32(255, 0, 0, 255));
      list.AddCallback(draw_heatmap, &scene.draw);
      list.AddCallback(ImDrawCallback_ResetRenderState, nullptr);
      list.AddRectFilled({100, 20}, {140, 60}, IM_COL32(0, 255, 0, 255));
    });
    CHECK(pixel(image, 15, 15) == Color{255, 0, 0, 255});
    CHECK(pixel(image, 25, 25) == expected_color(scene.draw, 0));
    CHECK(pixel(image, 55, 25) == expected_color(scene.draw, 1));
    CHECK(pixel(image, 25, 55) == expected_color(scene.draw, 1));
    CHECK(pixel(image, 120, 40) == Color{0, 255, 0, 255});
    CHECK(pixel(image, 180, 110) == kBackground);
  }
}

TEST_CASE("pictures are drawn 1:1 at every scale, wherever they are put") {
  for (const float scale : {1.0f, 1.25f, 1.5f, 2.0f}) {
    auto canvas = open_canvas(203, 151);
    if (canvas == nullptr) return;
    Stage stage(std::move(canvas));
    stage.scale = scale;
    const ImTextureID id = stage.renderer->images().create(chequer(24, 17));
    const float x = 13, y = 7.3f;
    const PixelImage image = stage.frame([&](ImDrawList& list) {
      list.AddImage(id, {x, y}, {x + 24 / scale, y + 17 / scale});
    });
    const int left = static_cast<int>(std::lround(x * scale)), top = static_cast<int>(std::lround(y * scale));
    CHECK_MESSAGE(is_sharp_chequer(image, left, top, 24, 17), "scale ", scale);
    stage.renderer->images().destroy(id);
  }
}

TEST_CASE("a translucent picture blends by its own alpha") {
  auto canvas = open_canvas(20, 20);
  if (canvas == nullptr) return;
  Stage stage(std::move(canvas));
  // Premultiplied white at half alpha, then nothing.
  const ImTextureID id = stage.renderer->images().create({2, 1, {128, 128, 128, 128, 0, 0, 0, 0}});
  const PixelImage image = stage.frame([&](ImDrawList& list) { list.AddImage(id, {4, 4}, {6, 5}); });
  CHECK(difference(pixel(image, 4, 4), mix(kBackground, {255, 255, 255, 255}, 128 / 255.0)) <= 1);
  CHECK(pixel(image, 5, 4) == kBackground);
}

TEST_CASE("text has the same pixels wherever it starts") {
  for (const float scale : {1.0f, 1.25f, 1.5f}) {
    auto canvas = open_canvas(200, 60);
    if (canvas == nullptr) return;
    Stage stage(std::move(canvas));
    stage.scale = scale;
    // A single letter: where it starts within a pixel may not change its look.
    const auto draw_at = [&](float x, float y) {
      return stage.frame([&](ImDrawList& list) {
        list.AddText(stage.fonts.get(FontRole::kText14), FontSet::size(FontRole::kText14), {x, y},
                     IM_COL32(255, 255, 255, 255), "H");
      });
    };
    const auto ink = [&](const PixelImage& image) {
      std::vector<int> found;
      for (int y = 0; y < image.height; ++y)
        for (int x = 0; x < image.width; ++x)
          if (pixel(image, x, y).r > 1) found.push_back(pixel(image, x, y).r);
      return found;
    };
    const std::vector<int> reference = ink(draw_at(8, 8));
    CHECK(reference.size() > 10);
    for (const float x : {9.0f, 10.0f, 11.0f, 12.4f}) CHECK(ink(draw_at(x, x)) == reference);
  }
}

TEST_CASE("shapes are not moved by snapping, glyph rectangles by at most half a pixel") {
  ImGuiHere imgui;
  FontSet fonts;
  fonts.build(1.25f);
  compat::set_display(ImGui::GetIO(), 500, 300, 1.25f);
  ImGui::GetIO().DeltaTime = 1.0f / 60;
  ImGui::NewFrame();
  ImDrawList& list = *ImGui::GetBackgroundDrawList();
  list.AddRectFilled({3.3f, 4.4f}, {50.7f, 60.1f}, IM_COL32_WHITE);
  list.AddLine({1.1f, 2.2f}, {30.3f, 40.4f}, IM_COL32_WHITE, 2);
  const int shapes = list.VtxBuffer.Size;
  list.AddText(fonts.get(FontRole::kText13), FontSet::size(FontRole::kText13), {5, 7}, IM_COL32_WHITE,
               "Attention 0.6134");
  ImGui::Render();
  const std::vector<ImDrawVert> before(list.VtxBuffer.begin(), list.VtxBuffer.end());
  snap_to_pixels(*ImGui::GetDrawData(), [](const ImDrawCmd&) { return compat::font_texture_size(); });
  for (int i = 0; i < list.VtxBuffer.Size; ++i) {
    const ImVec2 a = before[static_cast<std::size_t>(i)].pos, b = list.VtxBuffer[i].pos;
    if (i < shapes) {
      CHECK(a.x == b.x);
      CHECK(a.y == b.y);
    } else {
      CHECK(std::fabs(a.x - b.x) * 1.25f <= 0.501f);
      CHECK(std::fabs(b.x * 1.25f - std::round(b.x * 1.25f)) < 1e-3f);
      CHECK(std::fabs(b.y * 1.25f - std::round(b.y * 1.25f)) < 1e-3f);
    }
  }
}

TEST_CASE("the logical size leads to exactly the framebuffer's size") {
  ImGuiHere imgui;
  ImGuiIO& io = ImGui::GetIO();
  for (const float scale : {0.5f, 1.0f, 1.1f, 1.25f, 1.3f, 1.5f, 1.75f, 2.0f, 3.3f})
    for (int size = 1; size < 5000; size += 7) {
      compat::set_display(io, size, size, scale);
      CHECK(static_cast<int>(io.DisplaySize.x * io.DisplayFramebufferScale.x) == size);
      CHECK(io.DisplaySize.x == doctest::Approx(static_cast<float>(size) / scale));
    }
}

}  // namespace qkv::test
