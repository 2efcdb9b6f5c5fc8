// Small pictures as OpenGL textures for ImGui.
#pragma once

#include <unordered_map>
#include <vector>

#include "app/gl/texture.h"
#include "app/ui/image_store.h"

namespace qkv {

// An OpenGL context must be current in every call and in the destructor.
class ImageTextures final : public ImageStore {
 public:
  ImTextureID create(const PixelImage& image) override;
  // The texture lives until the next begin_frame(), since draw lists may still name it.
  void destroy(ImTextureID id) override;

  // Before the draw lists of a frame are built.
  void begin_frame() { doomed_.clear(); }
  // In texels; (0, 0) for an unknown handle.
  ImVec2 size(ImTextureID id) const;
  std::size_t count() const { return textures_.size(); }

 private:
  std::unordered_map<GLuint, Texture> textures_;
  std::vector<Texture> doomed_;
};

}  // namespace qkv
