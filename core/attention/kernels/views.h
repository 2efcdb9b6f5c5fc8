// Row-major float32 matrices that somebody else holds, for code that does without Eigen.
#pragma once

#include "core/attention/rect.h"

namespace qkv {

// Read-only. `stride`: floats from one row to the next, at least `cols`.
struct FloatView {
  const float* data = nullptr;
  Index rows = 0, cols = 0, stride = 0;
  const float* row(Index r) const { return data + r * stride; }
  explicit operator bool() const { return data != nullptr; }
};

// To be written.
struct FloatBlock {
  float* data = nullptr;
  Index rows = 0, cols = 0, stride = 0;
  float* row(Index r) const { return data + r * stride; }
  explicit operator bool() const { return data != nullptr; }
};

}  // namespace qkv
