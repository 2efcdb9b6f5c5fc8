#include "app/gl/program.h"

#include <array>
#include <cstdlib>
#include <filesystem>

#include "core/base/file.h"

namespace qkv {

std::string_view shader_text(std::string_view file);  // generated from shaders/

namespace {

constexpr std::string_view kVersion = "#version 330 core\n";
constexpr std::string_view kSourceStart = "#line 1\n";  // so that logs count lines as the file does
constexpr std::size_t kMaxShaderBytes = std::size_t{1} << 20;

std::string trimmed(std::string log) {
  while (!log.empty() && (log.back() == '\n' || log.back() == '\0' || log.back() == ' ')) log.pop_back();
  return log;
}

std::string shader_log(GLuint shader) {
  GLint length = 0;
  glGetShaderiv(shader, GL_INFO_LOG_LENGTH, &length);
  std::string log(static_cast<std::size_t>(length), '\0');
  if (length > 0) glGetShaderInfoLog(shader, length, nullptr, log.data());
  return trimmed(std::move(log));
}

std::string program_log(GLuint program) {
  GLint length = 0;
  glGetProgramiv(program, GL_INFO_LOG_LENGTH, &length);
  std::string log(static_cast<std::size_t>(length), '\0');
  if (length > 0) glGetProgramInfoLog(program, length, nullptr, log.data());
  return trimmed(std::move(log));
}

Result<GlShader> compile(GLenum stage, std::string_view source, std::string_view constants) {
  GlShader shader(glCreateShader(stage));
  const std::array parts{kVersion, constants, kSourceStart, source};
  std::array<const GLchar*, parts.size()> texts{};
  std::array<GLint, parts.size()> lengths{};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    texts[i] = parts[i].data();
    lengths[i] = static_cast<GLint>(parts[i].size());
  }
  glShaderSource(shader.get(), static_cast<GLsizei>(parts.size()), texts.data(), lengths.data());
  glCompileShader(shader.get());
  GLint compiled = GL_FALSE;
  glGetShaderiv(shader.get(), GL_COMPILE_STATUS, &compiled);
  if (compiled == GL_TRUE) return shader;
  const std::string name = stage == GL_VERTEX_SHADER ? "vertex" : "fragment";
  return Error{ErrorCode::kNoDisplay, "OpenGL rejects the " + name + " shader: " + shader_log(shader.get())};
}

}  // namespace

Result<Program> Program::link(std::string_view vertex, std::string_view fragment, std::string_view constants) {
  const Result<GlShader> vertex_shader = compile(GL_VERTEX_SHADER, vertex, constants);
  if (!vertex_shader) return vertex_shader.error();
  const Result<GlShader> fragment_shader = compile(GL_FRAGMENT_SHADER, fragment, constants);
  if (!fragment_shader) return fragment_shader.error();

  Program program;
  program.handle_ = GlProgram(glCreateProgram());
  const GLuint id = program.handle_.get();
  glAttachShader(id, vertex_shader.value().get());
  glAttachShader(id, fragment_shader.value().get());
  glLinkProgram(id);
  GLint linked = GL_FALSE;
  glGetProgramiv(id, GL_LINK_STATUS, &linked);
  if (linked != GL_TRUE) return Error{ErrorCode::kNoDisplay, "OpenGL cannot link the shaders: " + program_log(id)};
  glDetachShader(id, vertex_shader.value().get());
  glDetachShader(id, fragment_shader.value().get());

  GLint count = 0;
  glGetProgramiv(id, GL_ACTIVE_UNIFORMS, &count);
  for (GLint i = 0; i < count; ++i) {
    std::array<GLchar, 128> name{};
    GLint size = 0;
    GLenum type = 0;
    glGetActiveUniform(id, static_cast<GLuint>(i), static_cast<GLsizei>(name.size()), nullptr, &size, &type,
                       name.data());
    program.uniforms_.emplace(name.data(), glGetUniformLocation(id, name.data()));
  }
  return program;
}

GLint Program::uniform(std::string_view name) const {
  const auto found = uniforms_.find(name);
  return found == uniforms_.end() ? -1 : found->second;
}

Result<std::string> shader_source(std::string_view file) {
  if (const char* folder = std::getenv("QKVLAB_SHADERS"); folder != nullptr && *folder != '\0') {
    const std::filesystem::path path = std::filesystem::path(folder) / file;
    const Result<Bytes> bytes = read_file(path, kMaxShaderBytes);
    if (!bytes) return Error{ErrorCode::kCannotRead, path.string() + ": " + bytes.error().message};
    return std::string(as_text(bytes.value()));
  }
  return std::string(shader_text(file));
}

}  // namespace qkv
