// What differs between versions of Dear ImGui (1.86 to 1.92), for hosts and fonts. Keys are in app/ui/keys.h.
#pragma once

#include <imgui.h>

#include <cstddef>
#include <functional>
#include <string>

namespace qkv::compat {

// The clipboard that ImGui's widgets use.
struct Clipboard {
  std::string (*get)(void* user);
  void (*set)(void* user, const char* text);
  void* user = nullptr;
  std::string last;  // what get() returned: ImGui keeps a pointer to it
};
// `clipboard` must outlive the current context's use of it.
void set_clipboard(Clipboard& clipboard);

// A framebuffer of `width` × `height` device pixels at `scale` device pixels per logical pixel.
void set_display(ImGuiIO& io, int width, int height, float scale);

// Input of the next frame. Positions in logical pixels; none = off the window.
void feed_mouse_position(ImGuiIO& io, ImVec2 position);
void feed_no_mouse(ImGuiIO& io);
void feed_mouse_button(ImGuiIO& io, int button, bool down);
void feed_wheel(ImGuiIO& io, float x, float y);
void feed_modifiers(ImGuiIO& io, bool ctrl, bool shift, bool alt, bool super);

// The OpenGL backend's copy of the font atlas, after it was rebuilt.
void upload_fonts();

// The texture of a draw command, and whether it is the font atlas.
ImTextureID texture_id(const ImDrawCmd& command);
bool is_font_texture(const ImDrawCmd& command);
ImVec2 font_texture_size();

// Scales every font from device to logical pixels.
void set_font_scale(ImGuiIO& io, float scale);

// Whether ImGui makes glyphs when they are first drawn (1.92), so that nothing has to be announced.
inline constexpr bool kFontsLoadGlyphsThemselves = IMGUI_VERSION_NUM >= 19200;

// One font file for one size. Lengths in device pixels.
struct FontSource {
  const void* data = nullptr;  // the file, must stay in memory; not freed by ImGui
  std::size_t size = 0;
  int face_index = 0;
  float em = 13, line = 16;
  float offset_y = 0;               // moves every glyph down
  const ImWchar* ranges = nullptr;  // must stay in memory until the atlas is built
};
void use_freetype(ImFontAtlas& atlas);
// Starts a font, or where `onto` is one adds glyphs to it that it lacks.
ImFont* add_font(ImFontAtlas& atlas, const FontSource& source, ImFont* onto);
void build_atlas(ImFontAtlas& atlas);

struct Advance {
  float width = 0;
  float shift = 0;  // of the glyph to the right
};
// Sets the height of a built font's line and asks for each glyph's width; no effect from 1.92 on.
void set_metrics(ImFont& font, float line, const std::function<Advance(char32_t, float built)>& advance_of);

}  // namespace qkv::compat
