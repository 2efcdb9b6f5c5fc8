#include "app/engine/lens.h"

#include <utility>

namespace qkv {

Result<std::shared_ptr<const LensResult>> look_through(const LensRequest& request, const StopFlag* stop) {
  Result<LensCells> cells = lens_cells(request.of->trace, request.lens, request.target, stop);
  if (!cells.ok()) return cells.error();
  return std::shared_ptr<const LensResult>(std::make_shared<LensResult>(LensResult{std::move(cells).value(), request}));
}

}  // namespace qkv
