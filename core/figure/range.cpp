#include "core/figure/range.h"

#include <algorithm>
#include <cmath>

namespace qkv {
namespace {

ColorRange flat_range(float value) { return {value, value, true}; }

void add_cell(FiniteExtent& extent, float value) {
  if (std::isnan(value)) {
    ++extent.nan;
  } else if (std::isinf(value)) {
    ++extent.infinite;
  } else {
    extent.low = extent.count == 0 ? value : std::min(extent.low, value);
    extent.high = extent.count == 0 ? value : std::max(extent.high, value);
    ++extent.count;
  }
}

}  // namespace

double ColorRange::position(float value) const {
  if (flat) return 0.5;
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
      extent = merge(extent, {row.minCoeff(), row.maxCoeff(), values.cols()});
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
  return merged;
}

CellClass classify(float value, bool visible, const ColorRange& range) {
  if (!visible) return CellClass::kMasked;
  if (std::isnan(value)) return CellClass::kNan;
  if (std::isinf(value)) return value > 0 ? CellClass::kPlusInf : CellClass::kMinusInf;
  if (range.flat) return CellClass::kValue;
  if (value < range.low) return CellClass::kBelow;
  return value > range.high ? CellClass::kAbove : CellClass::kValue;
}

}  // namespace qkv
