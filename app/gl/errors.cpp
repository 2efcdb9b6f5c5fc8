#include "app/gl/errors.h"

#include <glad/gl.h>

#include <cstdio>

namespace qkv {
namespace {

// A lost context may report errors for ever.
constexpr int kMostErrors = 16;

const char* error_name(GLenum error) {
  switch (error) {
    case GL_INVALID_ENUM:
      return "GL_INVALID_ENUM";
    case GL_INVALID_VALUE:
      return "GL_INVALID_VALUE";
    case GL_INVALID_OPERATION:
      return "GL_INVALID_OPERATION";
    case GL_INVALID_FRAMEBUFFER_OPERATION:
      return "GL_INVALID_FRAMEBUFFER_OPERATION";
    case GL_OUT_OF_MEMORY:
      return "GL_OUT_OF_MEMORY";
    default:
      return "an unknown OpenGL error";
  }
}

}  // namespace

std::string take_gl_errors() {
  std::string names;
  for (int i = 0; i < kMostErrors; ++i) {
    const GLenum error = glGetError();
    if (error == GL_NO_ERROR) break;
    if (!names.empty()) names += ", ";
    names += error_name(error);
  }
  return names;
}

void check_gl([[maybe_unused]] const char* phase) {
#ifndef NDEBUG
  const std::string names = take_gl_errors();
  if (!names.empty()) std::fprintf(stderr, "qkvlab: OpenGL error after %s: %s\n", phase, names.c_str());
#endif
}

}  // namespace qkv
