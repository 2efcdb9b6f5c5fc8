// What the stage shows through a lens: a matrix of gradients or differences for each matrix of a trace.
#pragma once

#include <memory>

#include "app/engine/engine.h"
#include "core/figure/lens.h"

namespace qkv {

struct LensRequest {
  std::shared_ptr<const Computed> of;
  Lens lens = Lens::kGradient;  // not kValues
  GradientTarget target;        // for kGradient; a cell of the trace
  bool operator==(const LensRequest&) const = default;
};

// Immutable.
struct LensResult : LensCells {
  LensRequest request;
};

// Errors: as lens_cells().
Result<std::shared_ptr<const LensResult>> look_through(const LensRequest& request, const StopFlag* stop);

}  // namespace qkv
