// A picture in memory that OpenGL draws into.
#pragma once

#include "app/gl/handles.h"
#include "core/base/result.h"

namespace qkv {

// RGBA8 without depth.
struct Framebuffer {
  GlFramebuffer handle;
  GlRenderbuffer pixels;
  int width = 0, height = 0;
};

// Leaves it bound for drawing and reading. Errors: kUnsupported when OpenGL refuses the size.
Result<Framebuffer> create_framebuffer(int width, int height);

}  // namespace qkv
