// Two-dimensional textures with one level, uploaded from tightly packed memory.
#pragma once

#include <cstddef>

#include "app/gl/handles.h"
#include "core/base/result.h"

namespace qkv {

enum class TexelFormat {
  kFloat,  // one float32 a texel, read in the shader as .r
  kByte,   // one byte a texel, read as .r in 0 … 1
  kRgba,   // four bytes a texel
};

struct Texture {
  GlTexture handle;
  int width = 0, height = 0;
  std::size_t bytes = 0;  // of texels, on the GPU
};

// Uploads `texels` texels in rows of `width`. The last row may be short: its rest stays undefined.
// Filter: nearest for kFloat and kByte (they are fetched by index), linear for kRgba, which is the same where a
// picture is drawn 1:1 on whole pixels. Errors: kUnsupported when OpenGL has no room.
// Binds the texture to the active unit; the upload state (alignment, row length) is set here.
Result<Texture> upload_texture(TexelFormat format, int width, const void* data, std::size_t texels);

// GL_MAX_TEXTURE_SIZE of the current context.
int max_texture_size();

}  // namespace qkv
