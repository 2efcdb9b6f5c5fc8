// What OpenGL complained about.
#pragma once

#include <string>

namespace qkv {

// Takes every pending error: "GL_INVALID_ENUM, GL_OUT_OF_MEMORY", or empty when there is none.
std::string take_gl_errors();

// In builds with asserts: prints the pending errors after `phase` to stderr. Elsewhere it does nothing, since
// glGetError waits for the driver.
void check_gl(const char* phase);

}  // namespace qkv
