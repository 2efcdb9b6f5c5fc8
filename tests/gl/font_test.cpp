#include "app/ui/fonts.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <cstdio>

namespace qkv::test {
namespace {

struct ImGuiHere {
  ImGuiHere() {
    ImGui::CreateContext();
    ImGui::GetIO().IniFilename = nullptr;
    ImGui::GetIO().DisplaySize = {800, 600};
  }
  ~ImGuiHere() { ImGui::DestroyContext(); }
};

constexpr int kRoles = static_cast<int>(FontRole::kCount);

}  // namespace

TEST_CASE("every base character is in every font") {
  ImGuiHere context;
  FontSet fonts;
  CHECK(fonts.needs_build(1));
  const auto start = std::chrono::steady_clock::now();
  fonts.build(1);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  MESSAGE("font atlas: ", took.count(), " ms, ", ImGui::GetIO().Fonts->TexWidth, " x ",
          ImGui::GetIO().Fonts->TexHeight);
  CHECK_FALSE(fonts.needs_build(1));
  for (int role = 0; role < kRoles; ++role) {
    ImFont* font = fonts.get(static_cast<FontRole>(role));
    REQUIRE(font != nullptr);
    for (const char32_t c : FontSet::base_characters()) {
      char code[16];
      std::snprintf(code, sizeof code, "U+%04X", static_cast<unsigned>(c));
      CHECK_MESSAGE(font->FindGlyphNoFallback(static_cast<ImWchar>(c)) != nullptr, code, " role ", role);
    }
  }
}

TEST_CASE("fonts for user text have Latin Extended-A") {
  ImGuiHere context;
  FontSet fonts;
  fonts.build(1);
  for (ImWchar c = 0x100; c <= 0x17f; ++c) {
    CHECK(fonts.get(FontRole::kText13)->FindGlyphNoFallback(c) != nullptr);
    CHECK(fonts.get(FontRole::kText14)->FindGlyphNoFallback(c) != nullptr);
  }
}

TEST_CASE("digits have one width, in whole device pixels") {
  ImGuiHere context;
  FontSet fonts;
  for (const float scale : {1.0f, 1.25f, 2.0f}) {
    fonts.build(scale);
    for (int role = 0; role < kRoles; ++role) {
      const ImFont* font = fonts.get(static_cast<FontRole>(role));
      const float width = font->FindGlyph('0')->AdvanceX;
      CHECK(width == std::round(width));
      for (ImWchar c = '0'; c <= '9'; ++c) {
        CHECK(font->FindGlyph(c)->AdvanceX == width);
        CHECK(font->GetCharAdvance(c) == width);
        CHECK(font->FindGlyph(c)->X0 >= -1);
        CHECK(font->FindGlyph(c)->X1 <= width + 1);
      }
      const float size = FontSet::size(static_cast<FontRole>(role));
      CHECK(font->FontSize == size * scale);
      CHECK(font->CalcTextSizeA(size, 1e9f, 0, "1111").x == doctest::Approx(4 * width / scale));
    }
  }
}

TEST_CASE("characters of user text are loaded when they are asked for") {
  ImGuiHere context;
  FontSet fonts;
  fonts.build(1);
  CHECK_FALSE(fonts.want("plain text, naïve café"));
  CHECK_FALSE(fonts.needs_build(1));
  ImFont* font = fonts.get(FontRole::kText13);
  CHECK(font->FindGlyphNoFallback(0x8c93) == nullptr);
  CHECK(fonts.want("貓 追 老鼠"));
  CHECK(fonts.needs_build(1));
  const auto start = std::chrono::steady_clock::now();
  fonts.build(1);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  MESSAGE("font atlas with CJK: ", took.count(), " ms");
  CHECK_FALSE(fonts.want("老鼠"));
  for (const char32_t c : U"貓追老鼠") {
    if (c == 0) continue;
    CHECK(fonts.get(FontRole::kText13)->FindGlyphNoFallback(static_cast<ImWchar>(c)) != nullptr);
    CHECK(fonts.get(FontRole::kText14)->FindGlyphNoFallback(static_cast<ImWchar>(c)) != nullptr);
    CHECK(fonts.get(FontRole::kValue26)->FindGlyphNoFallback(static_cast<ImWchar>(c)) == nullptr);
  }
  CHECK_FALSE(fonts.want("\xff\xfe broken \xf0\x9f"));  // replaced by U+FFFD, which is there
  CHECK(fonts.needs_build(2));
}

}  // namespace qkv::test
