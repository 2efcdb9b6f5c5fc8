// Renders ImGui's frames with OpenGL: text, pictures and heat maps into the bound framebuffer.
#pragma once

#include <memory>

#include "app/gl/heatmap_renderer.h"
#include "app/gl/image_textures.h"
#include "core/figure/color.h"

namespace qkv {

// The current ImGui context and OpenGL context must stay current from create() to the destructor.
class FrameRenderer {
 public:
  // Errors: kNoDisplay when OpenGL or its shaders do not work here.
  static Result<std::unique_ptr<FrameRenderer>> create();
  ~FrameRenderer();
  FrameRenderer(const FrameRenderer&) = delete;
  FrameRenderer& operator=(const FrameRenderer&) = delete;

  ImageTextures& images() { return images_; }
  HeatmapRenderer& heatmaps() { return heatmaps_; }

  // Before ImGui::NewFrame. `fonts_rebuilt`: the font atlas changed since the last frame.
  void begin_frame(bool fonts_rebuilt);
  // After ImGui::Render: clears the framebuffer of `width` × `height` device pixels and draws what ImGui holds.
  void render(int width, int height, Color background);

 private:
  explicit FrameRenderer(HeatmapRenderer heatmaps) : heatmaps_(std::move(heatmaps)) {}

  ImageTextures images_;
  HeatmapRenderer heatmaps_;
  bool backend_started_ = false;
};

}  // namespace qkv
