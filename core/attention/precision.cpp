#include "core/attention/precision.h"

#include <cmath>
#include <new>
#include <utility>

namespace qkv {
namespace {

// One cell's difference; counts it, and keeps it where it is the largest so far.
float compare_cell(NumberFormat format, float rounded, double exact, const MatrixCell& at, PrecisionSummary& summary) {
  const auto value = static_cast<double>(rounded);
  if (value == exact) return 0;
  const double difference = value - exact;
  if (std::isinf(rounded) && std::isfinite(exact)) ++summary.infinite;
  if (std::isnan(rounded) && !std::isnan(exact)) ++summary.nan;
  if (!std::isfinite(difference)) return static_cast<float>(difference);
  const double size = std::abs(difference), ulps = size / ulp_in(format, exact);
  if (size > summary.largest) {
    summary.largest = size;
    summary.largest_at = at;
  }
  if (ulps > summary.largest_ulps) {
    summary.largest_ulps = ulps;
    summary.largest_ulps_at = at;
  }
  return static_cast<float>(difference);
}

void compare(MatrixId id, Precision& result) {
  const MatrixD& exact = result.exact.at(id);
  const Matrix& rounded = result.rounded.at(id);
  PrecisionSummary summary = {.id = id, .largest_at = {id, 0, 0}, .largest_ulps_at = {id, 0, 0}};
  Matrix difference(exact.rows(), exact.cols());
  for (Index r = 0; r < exact.rows(); ++r) {
    for (Index c = 0; c < exact.cols(); ++c) {
      difference(r, c) = compare_cell(result.format, rounded(r, c), exact(r, c), {id, r, c}, summary);
    }
  }
  result.difference.add(id.kind, std::move(difference));
  result.summary.push_back(summary);
}

}  // namespace

Result<Precision> precision(NumberFormat format, const Problem& problem, const StopFlag* stop) {
  Precision result;
  result.format = format;
  Result<MatrixTable<MatrixD>> exact = steps_in_float64(problem, stop);
  if (!exact.ok()) return exact.error();
  result.exact = std::move(exact).value();
  Result<MatrixTable<Matrix>> rounded = steps_in(format, problem, stop);
  if (!rounded.ok()) return rounded.error();
  result.rounded = std::move(rounded).value();
  try {
    for (const MatrixKind kind : kAllMatrixKinds) {
      const int heads = static_cast<int>(result.exact.heads(kind).size());
      for (int head = 0; head < heads; ++head) compare({kind, head}, result);
    }
  } catch (const std::bad_alloc&) {
    return unsupported("not enough memory to compare every step with float64: use fewer tokens or heads");
  }
  return result;
}

const PrecisionSummary* summary_of(const Precision& precision, MatrixId id) {
  if (!is_per_head(id.kind)) id.head = 0;
  for (const PrecisionSummary& summary : precision.summary) {
    if (summary.id == id) return &summary;
  }
  return nullptr;
}

}  // namespace qkv
