// Which matrices share one colour scale where several are shown, in the window and in figures.
#pragma once

#include <cstddef>

#include "core/attention/matrix_id.h"

namespace qkv {

// Matrices in the same units, so that equal colours mean equal values.
enum class ScaleGroup {
  kWeights,     // A
  kScores,      // S, ALiBi, B, scaled: on one scale, so that scaling is seen to shrink
  kValues,      // Q, K, V, O
  kInput,       // X
  kProjection,  // W^Q, W^K, W^V and their biases
  kConcat,
  kWo,  // W^O, b^O
  kOut,
  kMask,
};
inline constexpr std::size_t kScaleGroups = 9;
ScaleGroup scale_group(MatrixKind kind);

}  // namespace qkv
