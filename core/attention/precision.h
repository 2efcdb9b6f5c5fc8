// What a number format does to a computation: every step in it, and how far that is from float64.
#pragma once

#include <vector>

#include "core/attention/matrix_cell.h"
#include "core/attention/steps.h"

namespace qkv {

// One matrix in a format against float64. Where there is no finite difference the counts are 0 and the largest 0, at
// its first cell.
struct PrecisionSummary {
  MatrixId id;
  double largest = 0;  // |format − float64|, of the cells that are finite in both
  MatrixCell largest_at = {};
  double largest_ulps = 0;  // the same in units of the format's last place at the float64 value
  MatrixCell largest_ulps_at = {};
  Index infinite = 0;  // cells that are ±Inf in the format and finite in float64: beyond its range
  Index nan = 0;       // cells that are NaN in the format and not in float64: what came of such an Inf
};

struct Precision {
  NumberFormat format = NumberFormat::kFloat32;
  MatrixTable<MatrixD> exact;             // steps_in_float64()
  MatrixTable<Matrix> rounded;            // steps_in()
  MatrixTable<Matrix> difference;         // rounded − exact; 0 where both are the same Inf, NaN where either is NaN
  std::vector<PrecisionSummary> summary;  // of each of these matrices, by kind and head
};

// `format` is not kFloat64. Errors: as forward.
Result<Precision> precision(NumberFormat format, const Problem& problem, const StopFlag* stop = nullptr);

// Of one matrix, or nullptr.
const PrecisionSummary* summary_of(const Precision& precision, MatrixId id);

}  // namespace qkv
