#include "app/platform/egl_context.h"

#include <glad/egl.h>
#include <glad/gl.h>

#include <array>
#include <cstdio>
#include <string>
#include <utility>

namespace qkv {
namespace {

Error no_opengl(const std::string& step) {
  std::array<char, 16> code{};
  std::snprintf(code.data(), code.size(), "0x%04x", static_cast<unsigned>(glad_eglGetError ? eglGetError() : 0));
  return {ErrorCode::kNoDisplay,
          "no OpenGL 3.3 without a display: " + step + " (EGL error " + code.data() +
              "); install libegl1 and libgl1-mesa-dri, or use `qkvlab render`, which needs neither"};
}

GLADapiproc load_gl(const char* name) { return reinterpret_cast<GLADapiproc>(eglGetProcAddress(name)); }

}  // namespace

EglContext::EglContext(EglContext&& other) noexcept
    : display_(std::exchange(other.display_, nullptr)),
      surface_(std::exchange(other.surface_, nullptr)),
      context_(std::exchange(other.context_, nullptr)) {}

EglContext& EglContext::operator=(EglContext&& other) noexcept {
  if (this != &other) {
    release();
    display_ = std::exchange(other.display_, nullptr);
    surface_ = std::exchange(other.surface_, nullptr);
    context_ = std::exchange(other.context_, nullptr);
  }
  return *this;
}

EglContext::~EglContext() { release(); }

void EglContext::release() {
  if (display_ == nullptr) return;
  eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
  if (context_ != nullptr) eglDestroyContext(display_, context_);
  if (surface_ != nullptr) eglDestroySurface(display_, surface_);
  eglTerminate(display_);
  display_ = surface_ = context_ = nullptr;
}

Status EglContext::open_display() {
  // The first load finds what needs no display, the second what this display's version and extensions add.
  if (gladLoaderLoadEGL(nullptr) == 0) return no_opengl("libEGL.so.1 is missing");
  EGLDisplay display = EGL_NO_DISPLAY;
  if (GLAD_EGL_EXT_platform_base != 0 && GLAD_EGL_MESA_platform_surfaceless != 0)
    display = eglGetPlatformDisplayEXT(EGL_PLATFORM_SURFACELESS_MESA, nullptr, nullptr);
  if (display != EGL_NO_DISPLAY && eglInitialize(display, nullptr, nullptr) == EGL_TRUE) {
    display_ = display;
  } else {
    display = eglGetDisplay(EGL_DEFAULT_DISPLAY);
    if (display == EGL_NO_DISPLAY || eglInitialize(display, nullptr, nullptr) != EGL_TRUE)
      return no_opengl("EGL has no display to start");
    display_ = display;
  }
  if (gladLoaderLoadEGL(display_) == 0) return no_opengl("EGL is older than 1.5");
  return Done{};
}

Status EglContext::make_current() {
  if (eglBindAPI(EGL_OPENGL_API) != EGL_TRUE) return no_opengl("EGL offers no desktop OpenGL");
  constexpr std::array<EGLint, 13> kConfig{EGL_SURFACE_TYPE,
                                           EGL_PBUFFER_BIT,
                                           EGL_RENDERABLE_TYPE,
                                           EGL_OPENGL_BIT,
                                           EGL_RED_SIZE,
                                           8,
                                           EGL_GREEN_SIZE,
                                           8,
                                           EGL_BLUE_SIZE,
                                           8,
                                           EGL_ALPHA_SIZE,
                                           8,
                                           EGL_NONE};
  EGLConfig config = nullptr;
  EGLint count = 0;
  if (eglChooseConfig(display_, kConfig.data(), &config, 1, &count) != EGL_TRUE || count == 0)
    return no_opengl("EGL has no 8-bit RGBA configuration");

  constexpr std::array<EGLint, 7> kContext{
      EGL_CONTEXT_MAJOR_VERSION,           3,       EGL_CONTEXT_MINOR_VERSION, 3, EGL_CONTEXT_OPENGL_PROFILE_MASK,
      EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT, EGL_NONE};
  context_ = eglCreateContext(display_, config, EGL_NO_CONTEXT, kContext.data());
  if (context_ == nullptr) return no_opengl("OpenGL 3.3 core is refused");
  if (eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, context_) != EGL_TRUE) {
    // Without EGL_KHR_surfaceless_context something has to be drawn to.
    constexpr std::array<EGLint, 5> kSize{EGL_WIDTH, 16, EGL_HEIGHT, 16, EGL_NONE};
    surface_ = eglCreatePbufferSurface(display_, config, kSize.data());
    if (surface_ == nullptr || eglMakeCurrent(display_, surface_, surface_, context_) != EGL_TRUE)
      return no_opengl("the context cannot be made current");
  }
  if (const int version = gladLoadGL(load_gl); version < GLAD_MAKE_VERSION(3, 3))
    return no_opengl("the driver's OpenGL is older than 3.3");
  return Done{};
}

Result<EglContext> EglContext::create() {
  EglContext context;
  if (Status opened = context.open_display(); !opened) return opened.error();
  if (Status current = context.make_current(); !current) return current.error();
  return context;
}

}  // namespace qkv
