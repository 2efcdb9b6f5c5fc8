#include "app/gl/pixel_snap.h"

#include <cmath>

namespace qkv {
namespace {

constexpr float kSameSize = 0.02f;  // relative: texels and device pixels count as 1:1

// ImDrawList::PrimRectUV and ImFont::RenderText write a rectangle as four vertices, clockwise from the upper left,
// and six indices 0 1 2 0 2 3.
bool is_rectangle(const ImDrawIdx* index) {
  const int first = index[0];
  return index[1] == first + 1 && index[2] == first + 2 && index[3] == first && index[4] == first + 2 &&
         index[5] == first + 3;
}

bool is_upright(const ImDrawVert* v) {
  return v[0].pos.y == v[1].pos.y && v[1].pos.x == v[2].pos.x && v[2].pos.y == v[3].pos.y && v[3].pos.x == v[0].pos.x &&
         v[0].uv.y == v[1].uv.y && v[1].uv.x == v[2].uv.x && v[2].uv.y == v[3].uv.y && v[3].uv.x == v[0].uv.x;
}

// How far to move along one axis, in device pixels, for texel borders to meet pixel borders. The lower end of the
// rectangle is `position`, that of the texture `texel`, both in pixels.
float to_grid(float position, float texel) {
  const float offset = position - texel;
  return std::round(offset) - offset;
}

void snap_rectangle(ImDrawVert* v, ImVec2 texture, ImVec2 scale) {
  const float texels_w = (v[2].uv.x - v[0].uv.x) * texture.x, texels_h = (v[2].uv.y - v[0].uv.y) * texture.y;
  const float pixels_w = (v[2].pos.x - v[0].pos.x) * scale.x, pixels_h = (v[2].pos.y - v[0].pos.y) * scale.y;
  if (!(texels_w > 0.5f) || !(texels_h > 0.5f)) return;
  if (std::fabs(texels_w - pixels_w) > kSameSize * texels_w || std::fabs(texels_h - pixels_h) > kSameSize * texels_h)
    return;
  const float dx = to_grid(v[0].pos.x * scale.x, v[0].uv.x * texture.x) / scale.x;
  const float dy = to_grid(v[0].pos.y * scale.y, v[0].uv.y * texture.y) / scale.y;
  for (int i = 0; i < 4; ++i) {
    v[i].pos.x += dx;
    v[i].pos.y += dy;
  }
}

}  // namespace

void snap_to_pixels(ImDrawData& data, const std::function<ImVec2(const ImDrawCmd&)>& texture_size) {
  for (int l = 0; l < data.CmdListsCount; ++l) {
    ImDrawList& list = *data.CmdLists[l];
    for (const ImDrawCmd& command : list.CmdBuffer) {
      if (command.UserCallback != nullptr || command.ElemCount < 6) continue;
      const ImVec2 texture = texture_size(command);
      if (texture.x <= 0 || texture.y <= 0) continue;
      const ImDrawIdx* index = list.IdxBuffer.Data + command.IdxOffset;
      ImDrawVert* vertices = list.VtxBuffer.Data + command.VtxOffset;
      for (unsigned i = 0; i + 6 <= command.ElemCount;) {
        const bool rectangle = is_rectangle(index + i) && is_upright(vertices + index[i]);
        if (rectangle) snap_rectangle(vertices + index[i], texture, data.FramebufferScale);
        i += rectangle ? 6 : 3;
      }
    }
  }
}

}  // namespace qkv
