// Moves pictures and glyphs onto whole device pixels.
#pragma once

#include <imgui.h>

#include <functional>

namespace qkv {

// Moves each textured rectangle of the draw data that is drawn 1:1 (a glyph, a label) by at most half a device
// pixel, so that its texels meet device pixels and the text is as sharp as its texture: at scales such as 1.25
// whole logical pixels lie between device pixels. Other shapes stay where they are.
// `texture_size` gives texels, (0, 0) for textures to leave alone.
void snap_to_pixels(ImDrawData& data, const std::function<ImVec2(const ImDrawCmd&)>& texture_size);

}  // namespace qkv
