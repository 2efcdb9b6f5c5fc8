#include "app/gl/readback.h"

#include <glad/gl.h>

#include <algorithm>

#include "app/gl/errors.h"

namespace qkv {

PixelImage read_framebuffer(int width, int height) {
  PixelImage image{std::max(width, 0), std::max(height, 0), {}};
  const std::size_t row = static_cast<std::size_t>(image.width) * 4;
  image.rgba.resize(row * static_cast<std::size_t>(image.height));
  if (image.rgba.empty()) return image;

  glPixelStorei(GL_PACK_ALIGNMENT, 1);
  glPixelStorei(GL_PACK_ROW_LENGTH, 0);
  glPixelStorei(GL_PACK_SKIP_ROWS, 0);
  glPixelStorei(GL_PACK_SKIP_PIXELS, 0);
  glReadPixels(0, 0, width, height, GL_RGBA, GL_UNSIGNED_BYTE, image.rgba.data());
  check_gl("reading pixels back");

  // OpenGL's first row is the lowest.
  const auto first = image.rgba.begin();
  for (std::size_t top = 0, bottom = static_cast<std::size_t>(image.height) - 1; top < bottom; ++top, --bottom) {
    const auto a = first + static_cast<std::ptrdiff_t>(top * row),
               b = first + static_cast<std::ptrdiff_t>(bottom * row);
    std::swap_ranges(a, a + static_cast<std::ptrdiff_t>(row), b);
  }
  for (std::size_t i = 3; i < image.rgba.size(); i += 4) image.rgba[i] = 255;
  return image;
}

}  // namespace qkv
