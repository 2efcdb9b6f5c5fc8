// Numbers inside cells: the largest text that fits every visible cell, and its colour.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "app/ui/ui.h"
#include "core/attention/matrix.h"

namespace qkv {

struct CellFormat {
  FontRole role = FontRole::kText13;
  int decimals = 3;
};

// Tries 13 then 11 px, then fewer decimals, at least two; matrices whose numbers have fewer digits need no more.
// nullopt where nothing fits. `value(r, c)` for the cells of `window`; sizes in logical pixels.
std::optional<CellFormat> fit_cell_text(const Ui& ui, const Rect& window,
                                        const std::function<float(Index, Index)>& value, double cell_w, double cell_h,
                                        int decimals);

std::string cell_text(float value, int decimals);

// Dark or light by the luminance of what the cell shows.
Color cell_ink(const Ui& ui, const ColorTable& table, const ColorRange& range, float value, bool visible);

}  // namespace qkv
