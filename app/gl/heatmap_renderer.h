// Draws heat maps with one fragment shader over raw float32 values: one rectangle a matrix, however many cells.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "app/gl/program.h"
#include "app/gl/texture.h"
#include "app/ui/heatmap_draw.h"

namespace qkv {

// An OpenGL 3.3 context must be current in every call and in the destructor.
class HeatmapRenderer final : public HeatmapSink {
 public:
  // `texture_limit` lowers the largest side of a texture (0 = the driver's). Errors: kNoDisplay when the shader does
  // not compile here.
  static Result<HeatmapRenderer> create(int texture_limit = 0);

  // Before the draw lists of a frame are rendered: `display_size` in logical pixels, `scale` device pixels per
  // logical pixel. Frees the textures of matrices that were not drawn for a while.
  void begin_frame(ImVec2 display_size, float scale, int framebuffer_height);

  // Needs ImGui's blending (source alpha) and a viewport of the whole framebuffer. Leaves the program, the vertex
  // array, the scissor box and the bound textures changed: ImDrawCallback_ResetRenderState is due afterwards.
  // A matrix that has no room in textures is drawn as a warning hatch.
  void draw(const HeatmapDraw& heatmap, const ImVec4& clip) override;

  std::size_t matrix_count() const { return matrices_.size(); }  // matrices held on the GPU

 private:
  // A matrix on the GPU. Where a side is above the texture limit its cells fill the texture in reading order.
  struct Matrix {
    std::uint64_t version = 0;
    int rows = 0, cols = 0;
    Texture values, keep;  // keep without a handle: all visible
    int fold = 0;          // texture width in reading order, 0 when rows are rows
    bool available = false;
    std::uint64_t last_frame = 0;
  };

  // A colour map on the GPU, and the ink of marks on its two ends.
  struct Table {
    Texture colors;
    Color ink_low, ink_high;
  };

  const Matrix& matrix(const HeatmapDraw& heatmap);
  bool upload(const HeatmapDraw& heatmap, Matrix& matrix) const;
  const Table& table(const std::string& colormap, ThemeName theme);
  bool set_scissor(const ImVec4& clip) const;
  void set_place(const HeatmapDraw& heatmap) const;
  void set_colors(const HeatmapDraw& heatmap, const Table& table) const;
  void evict();

  Program program_;
  GlVertexArray vertex_array_;  // empty, but core OpenGL draws with no other
  int texture_limit_ = 0;
  std::map<std::uint64_t, Matrix> matrices_;
  std::map<std::pair<std::string, ThemeName>, Table> tables_;
  std::uint64_t frame_ = 0;
  float scale_ = 1;
  int framebuffer_width_ = 0, framebuffer_height_ = 0;
};

}  // namespace qkv
