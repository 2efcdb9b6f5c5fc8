// The window without a window: the same frames drawn into memory through EGL, no display server needed.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/figure/text.h"
#include "core/session/session.h"

namespace qkv {

struct OffscreenOptions {
  Session session;
  int width = 1440, height = 900;  // logical pixels
  float scale = 1;                 // device pixels per logical pixel
  ThemeName theme = ThemeName::kLight;
  std::string compare;  // file that the session is compared with; empty = none
  std::string hover;    // name of a widget that the pointer rests on; empty = none
};

struct OffscreenPicture {
  PixelImage image;         // straight RGBA, top row first, width·scale × height·scale
  std::string layout_json;  // every named widget: {"width","height","scale","widgets":{name:[x,y,w,h]}}
};

// Draws frames until nothing changes (results computed, glyphs loaded) and reads the picture back.
// Errors: kNoDisplay where EGL or OpenGL 3.3 is missing; kUsage where `hover` names no widget.
Result<OffscreenPicture> draw_offscreen(const OffscreenOptions& options);

}  // namespace qkv
