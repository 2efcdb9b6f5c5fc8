#include "app/gl/texture.h"

#include <doctest/doctest.h>

#include <array>
#include <numeric>

#include "app/gl/errors.h"
#include "app/gl/image_textures.h"
#include "app/gl/program.h"
#include "app/gl/readback.h"
#include "tests/gl/support.h"

namespace qkv::test {
namespace {

// A pointer or an integer, by version of ImGui: only this kind of cast fits both.
GLuint to_gl(ImTextureID id) { return (GLuint)(std::uintptr_t)id; }

}  // namespace

TEST_CASE("pixels are read back with the top row first and rows of any length") {
  for (const int width : {1, 2, 3, 5, 7, 64}) {
    QKV_OPEN_CANVAS(canvas, width, 9);
    canvas->clear({10, 20, 30, 255});
    glEnable(GL_SCISSOR_TEST);
    glScissor(0, 8, 1, 1);  // OpenGL's top row
    glClearColor(1, 0, 0, 0.5f);
    glClear(GL_COLOR_BUFFER_BIT);
    const PixelImage image = canvas->read();
    CHECK(image.width == width);
    CHECK(image.rgba.size() == static_cast<std::size_t>(width) * 9 * 4);
    CHECK(pixel(image, 0, 0) == Color{255, 0, 0, 255});
    CHECK(pixel(image, 0, 8) == Color{10, 20, 30, 255});
    CHECK(pixel(image, width - 1, 8) == Color{10, 20, 30, 255});
    CHECK(take_gl_errors() == "");
  }
}

TEST_CASE("a texture holds what was uploaded, with a short last row as well") {
  QKV_OPEN_CANVAS(canvas, 4, 4);
  std::array<float, 11> values{};
  std::iota(values.begin(), values.end(), 0.5f);
  const Result<Texture> texture = upload_texture(TexelFormat::kFloat, 3, values.data(), values.size());
  REQUIRE(texture.ok());
  CHECK(texture.value().width == 3);
  CHECK(texture.value().height == 4);
  CHECK(texture.value().bytes == 48);
  std::array<float, 12> back{};
  glPixelStorei(GL_PACK_ALIGNMENT, 1);
  glGetTexImage(GL_TEXTURE_2D, 0, GL_RED, GL_FLOAT, back.data());
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(back[i] == values[i]);
  CHECK(take_gl_errors() == "");
}

TEST_CASE("upload does not depend on the state that others leave") {
  QKV_OPEN_CANVAS(canvas, 4, 4);
  glPixelStorei(GL_UNPACK_ALIGNMENT, 8);
  glPixelStorei(GL_UNPACK_ROW_LENGTH, 17);
  const std::array<unsigned char, 9> bytes{1, 2, 3, 4, 5, 6, 7, 8, 9};
  const Result<Texture> texture = upload_texture(TexelFormat::kByte, 3, bytes.data(), bytes.size());
  REQUIRE(texture.ok());
  std::array<unsigned char, 9> back{};
  glPixelStorei(GL_PACK_ALIGNMENT, 1);
  glGetTexImage(GL_TEXTURE_2D, 0, GL_RED, GL_UNSIGNED_BYTE, back.data());
  CHECK(back == bytes);
}

TEST_CASE("pictures are stored with straight alpha and freed a frame after they were destroyed") {
  QKV_OPEN_CANVAS(canvas, 4, 4);
  ImageTextures images;
  PixelImage image{2, 1, {64, 32, 0, 128, 10, 20, 30, 255}};
  const ImTextureID id = images.create(image);
  CHECK(id != ImTextureID{});
  CHECK(images.size(id).x == 2);
  CHECK(images.size(id).y == 1);
  std::array<unsigned char, 8> back{};
  glBindTexture(GL_TEXTURE_2D, to_gl(id));
  glGetTexImage(GL_TEXTURE_2D, 0, GL_RGBA, GL_UNSIGNED_BYTE, back.data());
  CHECK(back == std::array<unsigned char, 8>{128, 64, 0, 128, 10, 20, 30, 255});

  images.destroy(id);
  CHECK(images.count() == 0);
  CHECK(images.size(id).x == 0);
  CHECK(glIsTexture(to_gl(id)) == GL_TRUE);
  images.begin_frame();
  CHECK(glIsTexture(to_gl(id)) == GL_FALSE);
  images.destroy(id);  // twice does no harm
  CHECK(images.create(PixelImage{}) == ImTextureID{});
  CHECK(take_gl_errors() == "");
}

TEST_CASE("handles free their object once") {
  QKV_OPEN_CANVAS(canvas, 4, 4);
  GlTexture a = create_gl<GlTextureKind>();
  const GLuint id = a.get();
  glBindTexture(GL_TEXTURE_2D, id);
  GlTexture b = std::move(a);
  CHECK(a.get() == 0);
  CHECK(b.get() == id);
  CHECK(glIsTexture(id) == GL_TRUE);
  b = GlTexture{};
  CHECK(glIsTexture(id) == GL_FALSE);
}

TEST_CASE("a shader that does not compile or link is an error with the log") {
  QKV_OPEN_CANVAS(canvas, 4, 4);
  const Result<Program> wrong =
      Program::link("void main() { gl_Position = vec4(0.0); }", "void main() { nonsense; }", "");
  REQUIRE_FALSE(wrong.ok());
  CHECK(wrong.error().code == ErrorCode::kNoDisplay);
  CHECK(wrong.error().message.find("fragment shader") != std::string::npos);
  CHECK(wrong.error().message.find("nonsense") != std::string::npos);
  const Result<Program> apart =
      Program::link("out float place; void main() { place = 1.0; gl_Position = vec4(0.0); }",
                    "in vec2 place; out vec4 c; void main() { c = vec4(place, 0.0, 1.0); }", "");
  CHECK_FALSE(apart.ok());
  const Result<Program> right =
      Program::link("void main() { gl_Position = vec4(0.0); }", "out vec4 c; void main() { c = vec4(float(FIVE)); }",
                    "const int FIVE = 5;\n");
  CHECK(right.ok());
  CHECK(take_gl_errors() == "");
}

TEST_CASE("a framebuffer that is too large is refused") {
  QKV_OPEN_CANVAS(canvas, 4, 4);
  CHECK_FALSE(create_framebuffer(1 << 24, 16).ok());
  CHECK_FALSE(create_framebuffer(0, 16).ok());
  CHECK(take_gl_errors() == "");
}

TEST_CASE("several contexts one after another") {
  for (int i = 0; i < 3; ++i) {
    QKV_OPEN_CANVAS(canvas, 8, 8);
    Result<HeatmapRenderer> renderer = HeatmapRenderer::create();
    REQUIRE(renderer.ok());
    Scene scene(1, 1, {1});
    scene.range(0, 1).fit(0, 0, 8);
    CHECK(pixel(draw(*canvas, renderer.value(), scene), 4, 4) == expected_color(scene.draw, 1));
  }
}

}  // namespace qkv::test
