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

struct DiagnosisWords {
  std::string headline;                                    // "Likely cause, in theirs: the scale is missing"
  std::vector<std::pair<std::string, std::string>> lines;  // "to fix it", "Multiply …"
};
// Of a comparison that is not equal.
DiagnosisWords diagnosis_words(const Comparison& comparison);

}  // namespace qkv
