#include "app/gl/image_textures.h"

#include <algorithm>

namespace qkv {
namespace {

// ImTextureID is a pointer in some versions of ImGui and an integer in others: only this kind of cast fits both.
ImTextureID to_texture_id(GLuint id) { return (ImTextureID)(std::uintptr_t)id; }
GLuint to_gl(ImTextureID id) { return (GLuint)(std::uintptr_t)id; }

// ImGui blends with the colour as it is, times alpha: the picture's colours are already multiplied.
std::vector<std::uint8_t> straight_alpha(const std::vector<std::uint8_t>& premultiplied) {
  std::vector<std::uint8_t> straight(premultiplied);
  for (std::size_t i = 0; i + 3 < straight.size(); i += 4) {
    const int alpha = straight[i + 3];
    if (alpha == 0 || alpha == 255) continue;
    for (std::size_t c = i; c < i + 3; ++c)
      straight[c] = static_cast<std::uint8_t>(std::min(255, (straight[c] * 255 + alpha / 2) / alpha));
  }
  return straight;
}

}  // namespace

ImTextureID ImageTextures::create(const PixelImage& image) {
  const std::size_t texels = static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height);
  if (image.width <= 0 || image.height <= 0 || image.rgba.size() != texels * 4) return {};
  const std::vector<std::uint8_t> straight = straight_alpha(image.rgba);
  Result<Texture> texture = upload_texture(TexelFormat::kRgba, image.width, straight.data(), texels);
  if (!texture) return {};
  const GLuint id = texture.value().handle.get();
  textures_.insert_or_assign(id, std::move(texture).value());
  return to_texture_id(id);
}

void ImageTextures::destroy(ImTextureID id) {
  const auto found = textures_.find(to_gl(id));
  if (found == textures_.end()) return;
  doomed_.push_back(std::move(found->second));
  textures_.erase(found);
}

ImVec2 ImageTextures::size(ImTextureID id) const {
  const auto found = textures_.find(to_gl(id));
  if (found == textures_.end()) return {0, 0};
  return {static_cast<float>(found->second.width), static_cast<float>(found->second.height)};
}

}  // namespace qkv
