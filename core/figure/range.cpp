#include "core/figure/range.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qkv {
namespace {

ColorRange flat_range(float value) { return {value, value, true}; }

// The smaller of two values above 0, where 0 stands for none.
float least_positive(float a, float b) { return a > 0 && b > 0 ? std::min(a, b) : std::max(a, b); }

// Down to the smallest value above 0, but not below kLogShare of the largest. Where zero and the largest are all there
// is, the whole scale lies between them.
ColorRange log_range(const FiniteExtent& extent) {
  if (extent.count == 0 || extent.low == extent.high || extent.high <= 0) return flat_range(extent.high);
  const float floor = std::max(kLogShare * extent.high, std::numeric_limits<float>::min());
  float low = std::max(floor, extent.positive);
  if (low >= extent.high) low = floor;
  return low < extent.high ? ColorRange{low, extent.high, false, true} : flat_range(extent.high);
}

void add_cell(FiniteExtent& extent, float value) {
  if (std::isnan(value)) {
    ++extent.nan;
  } else if (std::isinf(value)) {
    ++extent.infinite;
  } else {
    extent.low = extent.count == 0 ? value : std::min(extent.low, value);
    extent.high = extent.count == 0 ? value : std::max(extent.high, value);
    ++extent.count;
    if (value > 0) extent.positive = least_positive(extent.positive, value);
  }
}

// The smallest value above 0 of finite ones, or 0.
float positive_of(const Eigen::Ref<const Eigen::Array<float, 1, Eigen::Dynamic>>& row) {
  const float least = (row > 0.0F).select(row, std::numeric_limits<float>::infinity()).minCoeff();
  return std::isinf(least) ? 0 : least;
}

}  // namespace

double ColorRange::position(float value) const {
  if (flat) return 0.5;
  if (log) {
    if (!(value > 0)) return value < 0 ? -1 : 0;
    const double from_low = std::log2(static_cast<double>(value)) - std::log2(static_cast<double>(low));
    const double share = from_low / (std::log2(static_cast<double>(high)) - std::log2(static_cast<double>(low)));
    return share < 0 ? share : kLogStart + (1 - kLogStart) * share;
  }
  // In float64 the width of [−FLT_MAX, FLT_MAX] and of two neighbouring denormals are both exact enough.
  return (static_cast<double>(value) - low) / (static_cast<double>(high) - low);
}

FiniteExtent finite_extent(ConstMatrixRef values) {
  FiniteExtent extent;
  for (Index r = 0; r < values.rows(); ++r) {
    const auto row = values.row(r).array();
    if ((row * 0.0f).sum() != 0.0f) {  // NaN: not all are finite
      for (Index c = 0; c < values.cols(); ++c) add_cell(extent, values(r, c));
    } else if (values.cols() > 0) {
      extent = merge(extent, {row.minCoeff(), row.maxCoeff(), values.cols(), 0, 0, positive_of(row)});
    }
  }
  return extent;
}

FiniteExtent finite_extent(ConstMatrixRef values, ConstMatrixRef keep) {
  FiniteExtent extent;
  for (Index r = 0; r < values.rows(); ++r) {
    for (Index c = 0; c < values.cols(); ++c) {
      if (keep(r, c) != 0) add_cell(extent, values(r, c));
    }
  }
  return extent;
}

ColorRange resolve_range(const RangeSpec& spec, const FiniteExtent& extent) {
  switch (spec.mode) {
    case RangeMode::kUnit:
      return {0, 1, false};
    case RangeMode::kCustom:
      return spec.low < spec.high ? ColorRange{spec.low, spec.high, false} : flat_range(spec.low);
    case RangeMode::kSymmetric: {
      const float m = extent.count == 0 ? 0 : std::max(std::fabs(extent.low), std::fabs(extent.high));
      return m > 0 ? ColorRange{-m, m, false} : flat_range(0);
    }
    case RangeMode::kLog:
      return log_range(extent);
    case RangeMode::kAuto:
      break;
  }
  if (extent.count == 0) return flat_range(0);
  return extent.low < extent.high ? ColorRange{extent.low, extent.high, false} : flat_range(extent.low);
}

FiniteExtent merge(const FiniteExtent& a, const FiniteExtent& b) {
  FiniteExtent merged = a.count == 0 ? b : a;
  if (a.count != 0 && b.count != 0) {
    merged.low = std::min(a.low, b.low);
    merged.high = std::max(a.high, b.high);
  }
  merged.count = a.count + b.count;
  merged.nan = a.nan + b.nan;
  merged.infinite = a.infinite + b.infinite;
  merged.positive = least_positive(a.positive, b.positive);
  return merged;
}

CellClass classify(float value, bool visible, const ColorRange& range) {
  if (!visible) return CellClass::kMasked;
  if (std::isnan(value)) return CellClass::kNan;
  if (std::isinf(value)) return value > 0 ? CellClass::kPlusInf : CellClass::kMinusInf;
  if (range.flat || (range.log && value == 0)) return CellClass::kValue;
  if (value < range.low) return CellClass::kBelow;
  return value > range.high ? CellClass::kAbove : CellClass::kValue;
}

}  // namespace qkv
