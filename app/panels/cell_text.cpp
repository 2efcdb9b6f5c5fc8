#include "app/panels/cell_text.h"

#include <algorithm>
#include <cmath>

#include "core/base/number_text.h"

namespace qkv {
namespace {

constexpr double kSidePadding = 4;  // both sides together

bool is_whole(float value) { return !std::isfinite(value) || (value == std::round(value) && std::abs(value) < 1e6f); }

}  // namespace

std::string cell_text(float value, int decimals) { return format_value(value, decimals); }

std::optional<CellFormat> fit_cell_text(const Ui& ui, const Rect& window,
                                        const std::function<float(Index, Index)>& value, double cell_w, double cell_h,
                                        int decimals) {
  if (cell_h < 14 || cell_w < 14) return std::nullopt;
  bool whole = true;
  for (Index r = window.row; r < window.row + window.rows && whole; ++r)
    for (Index c = window.col; c < window.col + window.cols && whole; ++c) whole = is_whole(value(r, c));
  for (int digits = whole ? 0 : decimals; digits >= (whole ? 0 : 1); --digits) {
    float widest = 0;  // at 13 px
    for (Index r = window.row; r < window.row + window.rows; ++r)
      for (Index c = window.col; c < window.col + window.cols; ++c)
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
