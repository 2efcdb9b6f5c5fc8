// OpenGL objects that free themselves: move-only, one owner each. The context that made them must be current
// when they are destroyed.
#pragma once

#include <glad/gl.h>

#include <utility>

namespace qkv {

// Id 0 is no object. `Kind` says how one is freed.
template <class Kind>
class GlHandle {
 public:
  GlHandle() = default;
  explicit GlHandle(GLuint id) : id_(id) {}
  ~GlHandle() { reset(); }
  GlHandle(GlHandle&& other) noexcept : id_(std::exchange(other.id_, 0)) {}
  GlHandle& operator=(GlHandle&& other) noexcept {
    if (this != &other) {
      reset();
      id_ = std::exchange(other.id_, 0);
    }
    return *this;
  }
  GlHandle(const GlHandle&) = delete;
  GlHandle& operator=(const GlHandle&) = delete;

  GLuint get() const { return id_; }
  explicit operator bool() const { return id_ != 0; }
  void reset() {
    if (id_ != 0) Kind::destroy(id_);
    id_ = 0;
  }

 private:
  GLuint id_ = 0;
};

struct GlProgramKind {
  static void destroy(GLuint id) { glDeleteProgram(id); }
};
struct GlShaderKind {
  static void destroy(GLuint id) { glDeleteShader(id); }
};
struct GlTextureKind {
  static GLuint create() {
    GLuint id = 0;
    glGenTextures(1, &id);
    return id;
  }
  static void destroy(GLuint id) { glDeleteTextures(1, &id); }
};
struct GlVertexArrayKind {
  static GLuint create() {
    GLuint id = 0;
    glGenVertexArrays(1, &id);
    return id;
  }
  static void destroy(GLuint id) { glDeleteVertexArrays(1, &id); }
};
struct GlBufferKind {
  static GLuint create() {
    GLuint id = 0;
    glGenBuffers(1, &id);
    return id;
  }
  static void destroy(GLuint id) { glDeleteBuffers(1, &id); }
};
struct GlFramebufferKind {
  static GLuint create() {
    GLuint id = 0;
    glGenFramebuffers(1, &id);
    return id;
  }
  static void destroy(GLuint id) { glDeleteFramebuffers(1, &id); }
};
struct GlRenderbufferKind {
  static GLuint create() {
    GLuint id = 0;
    glGenRenderbuffers(1, &id);
    return id;
  }
  static void destroy(GLuint id) { glDeleteRenderbuffers(1, &id); }
};

using GlProgram = GlHandle<GlProgramKind>;
using GlShader = GlHandle<GlShaderKind>;
using GlTexture = GlHandle<GlTextureKind>;
using GlVertexArray = GlHandle<GlVertexArrayKind>;
using GlBuffer = GlHandle<GlBufferKind>;
using GlFramebuffer = GlHandle<GlFramebufferKind>;
using GlRenderbuffer = GlHandle<GlRenderbufferKind>;

template <class Kind>
GlHandle<Kind> create_gl() {
  return GlHandle<Kind>(Kind::create());
}

}  // namespace qkv
