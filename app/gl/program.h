// Shader programs: sources embedded in the binary, errors with the driver's log.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "app/gl/handles.h"
#include "core/base/result.h"

namespace qkv {

// A linked program and the places of its uniforms.
class Program {
 public:
  Program() = default;

  // `constants` are lines of GLSL that go before both sources (values that C++ and the shader share).
  // Sources have no #version line: it is set here. Errors: kNoDisplay with the log.
  static Result<Program> link(std::string_view vertex, std::string_view fragment, std::string_view constants);

  GLuint id() const { return handle_.get(); }
  // −1, which OpenGL ignores, for a name that the linker removed.
  GLint uniform(std::string_view name) const;

 private:
  GlProgram handle_;
  std::map<std::string, GLint, std::less<>> uniforms_;
};

// Text of shaders/`file`: from the folder in the environment variable QKVLAB_SHADERS, which lets shaders be edited
// without a build, else as embedded. Errors: kCannotRead.
Result<std::string> shader_source(std::string_view file);

}  // namespace qkv
