#include "app/gl/framebuffer.h"

#include <string>

#include "app/gl/errors.h"

namespace qkv {

Result<Framebuffer> create_framebuffer(int width, int height) {
  const auto refused = [&] {
    return unsupported("a picture of " + std::to_string(width) + " × " + std::to_string(height) +
                       " pixels is more than OpenGL draws here; give a smaller size or scale");
  };
  GLint limit = 0;
  glGetIntegerv(GL_MAX_RENDERBUFFER_SIZE, &limit);
  if (width <= 0 || height <= 0 || width > limit || height > limit) return refused();

  Framebuffer framebuffer{create_gl<GlFramebufferKind>(), create_gl<GlRenderbufferKind>(), width, height};
  check_gl("what came before a framebuffer");
  glBindRenderbuffer(GL_RENDERBUFFER, framebuffer.pixels.get());
  glRenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, width, height);
  glBindFramebuffer(GL_FRAMEBUFFER, framebuffer.handle.get());
  glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, framebuffer.pixels.get());
  const bool complete = glCheckFramebufferStatus(GL_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE;
  if (!take_gl_errors().empty() || !complete) return refused();
  return framebuffer;
}

}  // namespace qkv
