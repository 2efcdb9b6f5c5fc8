// One cell of a computation.
#pragma once

#include "core/attention/matrix.h"
#include "core/attention/matrix_id.h"

namespace qkv {

struct MatrixCell {
  MatrixId id;
  Index row = 0, col = 0;
  bool operator==(const MatrixCell&) const = default;
};

}  // namespace qkv
