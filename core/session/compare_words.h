// What a comparison found, in sentences: the same in the window and on the command line.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/session/compare.h"

namespace qkv {

// Three digits or so, for errors: "0.412", "3.1e-5", "nan".
std::string error_text(double value);
// The shortest text of a number as float32.
std::string cell_text(double value);

// "attn", "attn (theirs: weights), read as [N, H, d]".
std::string matrix_words(const ComparedArray& array, const Difference& difference);
// "12 of 48 cells wrong, off by more than 4.7e-6; 3 of them NaN or infinite on one side", or "equal, …".
std::string verdict_words(const Difference& difference);

// "head 2, row 貓, column 追": heads count from 1 and rows have their names, as on screen. `tokens` is how they are
// shown.
std::string place_words(const Session& session, const Difference& difference, const MatrixCell& cell,
                        TokenStyle tokens);
// "ours 0.5, theirs 0.25"
std::string both_words(const CellDifference& cell);

struct DiagnosisWords {
  std::string headline;                                    // "Likely cause, in theirs: the scale is missing"
  std::vector<std::pair<std::string, std::string>> lines;  // "to fix it", "Multiply …"
};
// Of a comparison that is not equal.
DiagnosisWords diagnosis_words(const Comparison& comparison);

}  // namespace qkv
