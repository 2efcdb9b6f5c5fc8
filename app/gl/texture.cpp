#include "app/gl/texture.h"

#include "app/gl/errors.h"

namespace qkv {
namespace {

struct FormatInfo {
  GLint internal_format;
  GLenum format, type;
  std::size_t bytes;
  GLint filter;
};

FormatInfo format_info(TexelFormat format) {
  switch (format) {
    case TexelFormat::kFloat:
      return {GL_R32F, GL_RED, GL_FLOAT, 4, GL_NEAREST};
    case TexelFormat::kByte:
      return {GL_R8, GL_RED, GL_UNSIGNED_BYTE, 1, GL_NEAREST};
    case TexelFormat::kRgba:
      break;
  }
  return {GL_RGBA8, GL_RGBA, GL_UNSIGNED_BYTE, 4, GL_LINEAR};
}

// Rows are tightly packed whatever their length: without this, rows of 3 bytes would be read as 4.
void set_unpack_state() {
  glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
  glPixelStorei(GL_UNPACK_ROW_LENGTH, 0);
  glPixelStorei(GL_UNPACK_SKIP_ROWS, 0);
  glPixelStorei(GL_UNPACK_SKIP_PIXELS, 0);
}

}  // namespace

Result<Texture> upload_texture(TexelFormat format, int width, const void* data, std::size_t texels) {
  const FormatInfo info = format_info(format);
  const std::size_t row = static_cast<std::size_t>(width);
  const int full_rows = static_cast<int>(texels / row);
  const int rest = static_cast<int>(texels % row);

  Texture texture{create_gl<GlTextureKind>(), width, full_rows + (rest > 0 ? 1 : 0), 0};
  texture.bytes = row * static_cast<std::size_t>(texture.height) * info.bytes;
  check_gl("what came before an upload");
  glBindTexture(GL_TEXTURE_2D, texture.handle.get());
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, info.filter);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, info.filter);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAX_LEVEL, 0);

  set_unpack_state();
  const auto* bytes = static_cast<const unsigned char*>(data);
  glTexImage2D(GL_TEXTURE_2D, 0, info.internal_format, width, texture.height, 0, info.format, info.type,
               rest == 0 ? bytes : nullptr);
  if (rest > 0) {
    glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, width, full_rows, info.format, info.type, bytes);
    glTexSubImage2D(GL_TEXTURE_2D, 0, 0, full_rows, rest, 1, info.format, info.type,
                    bytes + static_cast<std::size_t>(full_rows) * row * info.bytes);
  }
  const std::string errors = take_gl_errors();
  if (!errors.empty()) return unsupported("a texture of " + std::to_string(texels) + " texels: " + errors);
  return texture;
}

int max_texture_size() {
  GLint size = 0;
  glGetIntegerv(GL_MAX_TEXTURE_SIZE, &size);
  return size;
}

}  // namespace qkv
