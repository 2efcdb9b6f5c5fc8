#include "app/platform/imgui_compat.h"

#include <imgui_freetype.h>
#include <imgui_impl_opengl3.h>

#include <cfloat>
#include <cmath>

namespace qkv::compat {
namespace {

using FontNumber = decltype(ImFontConfig::FontNo);

// The backend computes the framebuffer's size as int(logical size · scale), so the product may not fall short.
float logical_size(int device, float scale) {
  float size = static_cast<float>(device) / scale;
  while (static_cast<int>(size * scale) < device) size = std::nextafter(size, FLT_MAX);
  return size;
}

}  // namespace

void set_display(ImGuiIO& io, int width, int height, float scale) {
  io.DisplaySize = {logical_size(width, scale), logical_size(height, scale)};
  io.DisplayFramebufferScale = {scale, scale};
}

#if IMGUI_VERSION_NUM >= 19110

void set_clipboard(Clipboard& clipboard) {
  ImGuiPlatformIO& platform = ImGui::GetPlatformIO();
  platform.Platform_ClipboardUserData = &clipboard;
  platform.Platform_GetClipboardTextFn = [](ImGuiContext*) -> const char* {
    auto* own = static_cast<Clipboard*>(ImGui::GetPlatformIO().Platform_ClipboardUserData);
    own->last = own->get(own->user);
    return own->last.c_str();
  };
  platform.Platform_SetClipboardTextFn = [](ImGuiContext*, const char* text) {
    const auto* own = static_cast<Clipboard*>(ImGui::GetPlatformIO().Platform_ClipboardUserData);
    own->set(own->user, text);
  };
}

#else

void set_clipboard(Clipboard& clipboard) {
  ImGuiIO& io = ImGui::GetIO();
  io.ClipboardUserData = &clipboard;
  io.GetClipboardTextFn = [](void* user) -> const char* {
    auto* own = static_cast<Clipboard*>(user);
    own->last = own->get(own->user);
    return own->last.c_str();
  };
  io.SetClipboardTextFn = [](void* user, const char* text) {
    const auto* own = static_cast<Clipboard*>(user);
    own->set(own->user, text);
  };
}

#endif

#if IMGUI_VERSION_NUM >= 18700

void feed_mouse_position(ImGuiIO& io, ImVec2 position) { io.AddMousePosEvent(position.x, position.y); }
void feed_no_mouse(ImGuiIO& io) { io.AddMousePosEvent(-FLT_MAX, -FLT_MAX); }
void feed_mouse_button(ImGuiIO& io, int button, bool down) { io.AddMouseButtonEvent(button, down); }
void feed_wheel(ImGuiIO& io, float x, float y) { io.AddMouseWheelEvent(x, y); }

void feed_modifiers(ImGuiIO& io, bool ctrl, bool shift, bool alt, bool super) {
#if IMGUI_VERSION_NUM >= 18900
  io.AddKeyEvent(ImGuiMod_Ctrl, ctrl);
  io.AddKeyEvent(ImGuiMod_Shift, shift);
  io.AddKeyEvent(ImGuiMod_Alt, alt);
  io.AddKeyEvent(ImGuiMod_Super, super);
#else
  io.AddKeyEvent(ImGuiKey_ModCtrl, ctrl);
  io.AddKeyEvent(ImGuiKey_ModShift, shift);
  io.AddKeyEvent(ImGuiKey_ModAlt, alt);
  io.AddKeyEvent(ImGuiKey_ModSuper, super);
#endif
}

#else

void feed_mouse_position(ImGuiIO& io, ImVec2 position) { io.MousePos = position; }
void feed_no_mouse(ImGuiIO& io) { io.MousePos = {-FLT_MAX, -FLT_MAX}; }
void feed_mouse_button(ImGuiIO& io, int button, bool down) { io.MouseDown[button] = down; }
void feed_wheel(ImGuiIO& io, float x, float y) {
  io.MouseWheelH += x;
  io.MouseWheel += y;
}
void feed_modifiers(ImGuiIO& io, bool ctrl, bool shift, bool alt, bool super) {
  io.KeyCtrl = ctrl;
  io.KeyShift = shift;
  io.KeyAlt = alt;
  io.KeySuper = super;
}

#endif

ImTextureID texture_id(const ImDrawCmd& command) { return command.GetTexID(); }

#if IMGUI_VERSION_NUM >= 19200

bool is_font_texture(const ImDrawCmd& command) { return command.TexRef._TexData != nullptr; }
ImVec2 font_texture_size() {
  const ImTextureData* texture = ImGui::GetIO().Fonts->TexData;
  return {static_cast<float>(texture->Width), static_cast<float>(texture->Height)};
}
void upload_fonts() {}                   // textures of fonts are part of the draw data
void set_font_scale(ImGuiIO&, float) {}  // glyphs are made for the size and density that they are drawn at
void use_freetype(ImFontAtlas& atlas) { atlas.SetFontLoader(ImGuiFreeType::GetFontLoader()); }
void build_atlas(ImFontAtlas&) {}
void set_metrics(ImFont&, float, const std::function<Advance(char32_t, float)>&) {}

#else

bool is_font_texture(const ImDrawCmd& command) { return command.GetTexID() == ImGui::GetIO().Fonts->TexID; }
ImVec2 font_texture_size() {
  const ImFontAtlas* atlas = ImGui::GetIO().Fonts;
  return {static_cast<float>(atlas->TexWidth), static_cast<float>(atlas->TexHeight)};
}

void upload_fonts() {
  // Without a texture yet, the backend's next frame makes one by itself.
  if (ImGui::GetIO().Fonts->TexID == ImTextureID{}) return;
  ImGui_ImplOpenGL3_DestroyFontsTexture();
  ImGui_ImplOpenGL3_CreateFontsTexture();
}
void set_font_scale(ImGuiIO& io, float scale) { io.FontGlobalScale = 1 / scale; }
void use_freetype(ImFontAtlas& atlas) { atlas.FontBuilderIO = ImGuiFreeType::GetBuilderForFreeType(); }
void build_atlas(ImFontAtlas& atlas) { atlas.Build(); }

void set_metrics(ImFont& font, float line, const std::function<Advance(char32_t, float)>& advance_of) {
  font.FontSize = line;
  for (ImFontGlyph& glyph : font.Glyphs) {
    const Advance advance = advance_of(glyph.Codepoint, glyph.AdvanceX);
    glyph.AdvanceX = advance.width;
    glyph.X0 += advance.shift;
    glyph.X1 += advance.shift;
  }
  font.BuildLookupTable();  // its tables repeat the advances
}

#endif

ImFont* add_font(ImFontAtlas& atlas, const FontSource& source, ImFont* onto) {
  ImFontConfig config;
  config.FontData = const_cast<void*>(source.data);
  config.FontDataSize = static_cast<int>(source.size);
  config.FontNo = static_cast<FontNumber>(source.face_index);
  config.GlyphRanges = source.ranges;
  config.GlyphOffset = {0, source.offset_y};
  config.MergeMode = onto != nullptr;
  config.OversampleH = 1;
#if IMGUI_VERSION_NUM >= 19200
  config.FontDataOwnedByAtlas = false;
  config.SizePixels = source.line;
  config.FontLoaderFlags = ImGuiFreeTypeLoaderFlags_LightHinting;
#else
  // The "bitmap" flag makes the size that of an em, as in every other program, instead of the font's height.
  config.SizePixels = source.em;
  config.FontBuilderFlags = ImGuiFreeTypeBuilderFlags_LightHinting | ImGuiFreeTypeBuilderFlags_Bitmap;
#endif
  ImFont* font = atlas.AddFont(&config);
  // Before 1.92 AddFont copies what is not the atlas's own, tens of megabytes for CJK: the truth is told afterwards.
#if IMGUI_VERSION_NUM < 19190
  atlas.ConfigData.back().FontDataOwnedByAtlas = false;
#elif IMGUI_VERSION_NUM < 19200
  atlas.Sources.back().FontDataOwnedByAtlas = false;
#endif
  return onto != nullptr ? onto : font;
}

}  // namespace qkv::compat
