// What the stage shows through a lens: a matrix of gradients or differences for each matrix of a trace.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "app/engine/engine.h"
#include "core/attention/gradient.h"
#include "core/attention/precision.h"

namespace qkv {

struct LensRequest {
  std::shared_ptr<const Computed> of;
  Lens lens = Lens::kGradient;  // not kValues
  GradientTarget target;        // for kGradient; a cell of the trace
  bool operator==(const LensRequest&) const = default;
};

// Immutable. Shapes are those of the trace.
struct LensResult {
  LensRequest request;
  MatrixTable<Matrix> shown;       // ∂L/∂ of each matrix, or the format's differences, float32
  MatrixTable<FiniteExtent> each;  // of each of them; of visible cells of the weights
  std::optional<Gradient> gradient;
  std::optional<Precision> precision;              // its differences are in `shown`
  std::array<FiniteExtent, kScaleGroups> extents;  // of those that share a colour scale, by ScaleGroup
  const Matrix* find(MatrixId id) const { return shown.find(id); }
};

// The power of ten that numbers of this size are best written in units of: 0 from 0.1 to 10⁴. Two digits of 0.004 would
// tell nothing; 4 in units of 10⁻³ does.
int power_of(const FiniteExtent& extent);

// Errors: as gradient() and precision(); kUnsupported where there is too much to keep in float64.
Result<std::shared_ptr<const LensResult>> look_through(const LensRequest& request, const StopFlag* stop);

// Looks through lenses off the UI thread, as Engine computes traces.
class LensEngine {
 public:
  explicit LensEngine(std::function<void()> wake);
  ~LensEngine();
  LensEngine(const LensEngine&) = delete;
  LensEngine& operator=(const LensEngine&) = delete;

  void request(const LensRequest& request);
  std::shared_ptr<const LensResult> take_result();
  std::optional<Error> take_error();
  bool busy() const;
  void wait();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qkv
