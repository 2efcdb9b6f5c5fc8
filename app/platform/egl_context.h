// An OpenGL 3.3 context without a display server, through EGL.
#pragma once

#include "core/base/result.h"

namespace qkv {

// Current on the thread that made it, from create() to the destructor. Move-only. OpenGL's functions are loaded.
class EglContext {
 public:
  // Mesa's surfaceless platform where there is one, else the default display with a small pixel buffer.
  // Errors: kNoDisplay with the step that failed.
  static Result<EglContext> create();
  ~EglContext();
  EglContext(EglContext&& other) noexcept;
  EglContext& operator=(EglContext&& other) noexcept;
  EglContext(const EglContext&) = delete;
  EglContext& operator=(const EglContext&) = delete;

 private:
  EglContext() = default;
  void release();
  Status open_display();
  Status make_current();

  // EGLDisplay, EGLSurface, EGLContext: pointers, null when absent.
  void* display_ = nullptr;
  void* surface_ = nullptr;
  void* context_ = nullptr;
};

}  // namespace qkv
