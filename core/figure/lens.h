// What cells show through a lens, in place of their values: gradients by them, or what a number format changes in them.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "core/attention/gradient.h"
#include "core/attention/precision.h"
#include "core/figure/range.h"
#include "core/figure/scale_group.h"
#include "core/session/view.h"

namespace qkv {

// Shapes are those of the trace.
struct LensCells {
  MatrixTable<Matrix> shown;       // ∂L/∂ of each matrix, or the format's differences, float32
  MatrixTable<FiniteExtent> each;  // of each of them; of visible cells of the weights
  std::optional<Gradient> gradient;
  std::optional<Precision> precision;                   // its differences are in `shown`
  std::array<FiniteExtent, kScaleGroups> extents = {};  // of those that share a colour scale, by ScaleGroup
  const Matrix* find(MatrixId id) const { return shown.find(id); }
};

// `lens` is not kValues; `target` is for kGradient. Errors: as gradient() and precision(); kUnsupported where there is
// too much to keep in float64.
Result<LensCells> lens_cells(const Trace& trace, Lens lens, const GradientTarget& target = {},
                             const StopFlag* stop = nullptr);

// The power of ten that numbers of this size are best written in units of: 0 from 0.1 to 10⁴. Two digits of 0.004 would
// tell nothing; 4 in units of 10⁻³ does.
int power_of(const FiniteExtent& extent);
// What a number is multiplied by before it is written in units of 10^power.
float unit_factor(int power);
// " · 10⁻³"; empty for 0.
std::string unit_words(int power);

// How a matrix is called through a lens that has it.
struct LensName {
  std::string whole, brief;  // "∂L/∂Q" and "∂Q", "ΔQ bf16" and "ΔQ"
};
LensName lens_matrix_name(const LensCells& cells, MatrixKind kind, bool transposed = false);
// What deserves a word beside the name: "up to 0.147", "0.5 ulp · 3 ∞".
std::string lens_note(const LensCells& cells, MatrixId id);
// "∂L by Q, K, V, O", "Δ of scores": of the colour bar of matrices that are called `name` together.
std::string lens_bar_name(const LensCells& cells, const std::string& name);
// "∂ Σ O² / ∂ ·", "bfloat16 − float64".
std::string lens_heading(const LensCells& cells, const Shapes& shapes);

}  // namespace qkv
