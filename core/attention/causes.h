// Why somebody else's attention differs from ours: the usual mistakes, each tried in float64.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/attention/altered.h"
#include "core/attention/altered_inputs.h"
#include "core/attention/difference.h"

namespace qkv {

// One way to depart from ours.
struct Cause {
  std::string id;       // "scale-missing", for scripts
  std::string group;    // causes of one group exclude each other
  std::string name;     // "the scale is missing"
  std::string meaning;  // one sentence: what is computed there
  std::string fix;      // one sentence: what to change
  std::function<void(Altered&)> apply;
};

// Those that a problem allows, the more common ones first. Some may change nothing in it.
std::vector<Cause> possible_causes(const Problem& problem, const Shapes& shapes);

// Those that their own weights suggest: other keys that nobody sees, a window, dropout. Refer to `theirs`.
std::vector<Cause> seen_causes(InputCache& cache, const std::vector<OtherMatrix>& theirs);

// One or two causes that, computed, come close to what somebody else has.
struct CauseFit {
  std::vector<Cause> causes;
  double wrong_left = 0;  // of the wrong cells in the rows tried, the part that stays wrong
  double remaining = 0;   // the largest error that they leave, as a part of the largest number of its matrix
  bool complete = false;  // that is within the tolerance, or within what rounding to `format` leaves
  NumberFormat format = NumberFormat::kFloat64;  // of that rounding; kFloat64: nothing is left to round
};

struct Diagnosis {
  bool inputs_differ = false;  // q, k, v, x or weights are others: nothing else was tried
  double before = 0;           // as `remaining`, of ours; ∞ where NaN or Inf stand against numbers
  // Set where rounding every step to the format makes errors of this size: nothing is wrong but the digits.
  NumberFormat rounding = NumberFormat::kFloat64;
  // Best first. Those that come first with `ties` more give the same numbers here: which one it is cannot be told.
  std::vector<CauseFit> explanations;
  std::size_t ties = 0;
  // Up to this kind all was explained; where later ones differ, it is for another reason as well.
  MatrixKind explained = MatrixKind::kX;
  Index rows_tried = 0, rows = 0;                     // of the queries
  std::size_t singles = 0, pairs = 0, all_pairs = 0;  // tried; pairs only where no single cause is complete
};

// How much work may go into it: floating-point operations.
struct SearchLimits {
  double of_a_single = 4e7, of_a_pair = 2e6, of_all_pairs = 6e9, of_one_that_needs_all_rows = 4e9;
};

// `found` are the differences of `theirs`. kCancelled when `stop` became true.
Result<Diagnosis> find_causes(InputCache& cache, const std::vector<OtherMatrix>& theirs,
                              const std::vector<Difference>& found, double tolerance = kFloat32Tolerance,
                              const SearchLimits& limits = {}, const StopFlag* stop = nullptr);

}  // namespace qkv
