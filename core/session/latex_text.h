// LaTeX text and matrices.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/session/session.h"

namespace qkv {

// The preamble that a body of what follows here needs, fonts only where its texts are not ASCII alone.
std::string latex_preamble(std::string_view body);

// `text` for running text: characters that LaTeX takes as commands or would join are spelled \ascii{92}, scripts that
// the main font lacks are marked \cjk{…}, \other{…}, \emoji{…}{U+1F600}. One line; of more than `most` characters the
// first and dots. `show_spaces`: as ␣, controls as in Python ("\n").
std::string latex_text(std::string_view text, std::size_t most = 200, bool show_spaces = false);

// "0.432", "\infty", "\mathrm{NaN}", "1.23\cdot 10^{8}".
std::string latex_number(double value, int decimals);
// The shortest digits of a finite float32.
std::string latex_exact(float value);

// Which of `count` rows or columns a document shows, in order, −1 standing for dots.
std::vector<Index> shown_indices(Index count);

// One matrix with tokens on the axes that have them; `name` is mathematics ("Q_1").
struct LatexMatrix {
  std::string name;
  Axis rows = Axis::kSingle, cols = Axis::kSingle;
  const MatrixSource* source = nullptr;
  enum class Hidden { kShown, kMinusInfinity, kZero } hidden = Hidden::kShown;  // how cells that the mask hides look
};
// A displayed equation. `options` say what is hidden.
std::string latex_matrix(const Session& session, const LatexMatrix& matrix);

}  // namespace qkv
