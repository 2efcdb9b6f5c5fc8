#include "app/panels/cell_text.h"

#include <algorithm>
#include <cmath>

#include "core/base/number_text.h"

namespace qkv {
namespace {

// Larger values are written with an exponent, where their own cell has room for that.
constexpr float kLargestFixed = 1e6f;
constexpr double kSidePadding = 3;  // both sides together

// Digits behind the point that a value has, at most `most`.
int digits_of(float value, int most) {
  if (!std::isfinite(value) || std::abs(value) >= kLargestFixed) return 0;
  double scaled = value;
  for (int digits = 0; digits < most; ++digits, scaled *= 10)
    if (std::abs(scaled - std::round(scaled)) <= 1e-5 * std::max(1.0, std::abs(scaled))) return digits;
  return most;
}

}  // namespace

std::string cell_text(float value, int decimals) {
  // Tiny values are 0.000 here: a cell has no room for exponents, and the inspector tells them apart.
  return std::isfinite(value) && std::abs(value) < kLargestFixed ? format_fixed(value, decimals)
                                                                 : format_value(value, 2);
}

std::optional<CellFormat> fit_cell_text(const Ui& ui, const Rect& window,
                                        const std::function<float(Index, Index)>& value, double cell_w, double cell_h,
                                        int decimals) {
  if (cell_h < 14 || cell_w < 14) return std::nullopt;
  int needed = 0;
  for (Index r = window.row; r < window.row + window.rows; ++r)
    for (Index c = window.col; c < window.col + window.cols; ++c)
      needed = std::max(needed, digits_of(value(r, c), decimals));
  // Fewer than two digits of a number that has more would tell little.
  for (int digits = needed; digits >= std::min(needed, 2); --digits) {
    float widest = 0;  // at 13 px
    for (Index r = window.row; r < window.row + window.rows; ++r)
      for (Index c = window.col; c < window.col + window.cols; ++c)
        if (std::abs(value(r, c)) < kLargestFixed || !std::isfinite(value(r, c)))
          widest = std::max(widest, text_width(ui, FontRole::kText13, cell_text(value(r, c), digits)));
    if (widest + kSidePadding <= cell_w && cell_h >= 16) return CellFormat{FontRole::kText13, digits};
    if (widest * 11 / 13 + kSidePadding <= cell_w) return CellFormat{FontRole::kSmall11, digits};
  }
  return std::nullopt;
}

Color cell_ink(const Ui& ui, const ColorTable& table, const ColorRange& range, float value, bool visible) {
  switch (classify(value, visible, range)) {
    case CellClass::kMasked:
      return ui.colors().dim;
    case CellClass::kNan:
      return ui.colors().nan_ink;
    case CellClass::kPlusInf:
    case CellClass::kAbove:
      return ink_on(table.back());
    case CellClass::kMinusInf:
    case CellClass::kBelow:
      return ink_on(table.front());
    case CellClass::kValue:
      break;
  }
  return ink_on(table[static_cast<std::size_t>(table_index(range.position(value)))]);
}

}  // namespace qkv
