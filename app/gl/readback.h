// Pixels back from OpenGL, as a picture.
#pragma once

#include "core/figure/text.h"

namespace qkv {

// The lower left `width` × `height` pixels of the framebuffer that is bound for reading, in the picture's order
// (top row first). Opaque: what a window shows has no alpha, so alpha is 255.
PixelImage read_framebuffer(int width, int height);

}  // namespace qkv
