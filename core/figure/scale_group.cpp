#include "core/figure/scale_group.h"

namespace qkv {

ScaleGroup scale_group(MatrixKind kind) {
  switch (kind) {
    case MatrixKind::kAttn:
      return ScaleGroup::kWeights;
    case MatrixKind::kScores:
    case MatrixKind::kAlibi:
    case MatrixKind::kBias:
    case MatrixKind::kScaled:
      return ScaleGroup::kScores;
    case MatrixKind::kKeep:
      return ScaleGroup::kMask;
    case MatrixKind::kX:
      return ScaleGroup::kInput;
    case MatrixKind::kWq:
    case MatrixKind::kWk:
    case MatrixKind::kWv:
    case MatrixKind::kBq:
    case MatrixKind::kBk:
    case MatrixKind::kBv:
      return ScaleGroup::kProjection;
    case MatrixKind::kConcat:
      return ScaleGroup::kConcat;
    case MatrixKind::kWo:
    case MatrixKind::kBo:
      return ScaleGroup::kWo;
    case MatrixKind::kOut:
      return ScaleGroup::kOut;
    default:
      return ScaleGroup::kValues;
  }
}

}  // namespace qkv
