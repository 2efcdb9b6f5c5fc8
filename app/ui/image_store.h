// Small pictures (labels made by Pango) as textures, without a word of OpenGL.
#pragma once

#include <imgui.h>

#include "core/figure/text.h"

namespace qkv {

// Uploads pictures and frees them. Handles are valid until destroy().
class ImageStore {
 public:
  virtual ~ImageStore() = default;
  // Premultiplied RGBA; drawn with ImDrawList::AddImage in white.
  virtual ImTextureID create(const PixelImage& image) = 0;
  virtual void destroy(ImTextureID id) = 0;
};

// Hands out distinct handles and keeps nothing: for frames without a display.
class NullImageStore final : public ImageStore {
 public:
  ImTextureID create(const PixelImage&) override { return (ImTextureID)(++last_); }
  void destroy(ImTextureID) override {}

 private:
  std::intptr_t last_ = 0;
};

}  // namespace qkv
