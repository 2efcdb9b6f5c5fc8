#include "core/figure/cell_text.h"

#include <cmath>

#include "core/base/number_text.h"

namespace qkv {

bool all_integers(ConstMatrixRef values) {
  for (Index r = 0; r < values.rows(); ++r) {
    for (Index c = 0; c < values.cols(); ++c) {
      const float value = values(r, c);
      if (std::isfinite(value) && (std::trunc(value) != value || std::fabs(value) >= 1e6F)) return false;
    }
  }
  return true;
}

std::string cell_text(float value, int decimals, bool integers) {
  return integers ? format_fixed(value, 0) : format_value(value, decimals);
}

std::string brief_cell_text(float value, int decimals) {
  std::string text = format_value(value, decimals);
  if (!std::isfinite(value) || std::fabs(value) >= 1 || text.find('e') == std::string::npos) return text;
  text = format_value(value, 0);  // "2e−07"
  const std::size_t first = text.find_first_of("0123456789", text.find('e'));
  return text.erase(first, std::min(text.find_first_not_of('0', first), text.size() - 1) - first);
}

}  // namespace qkv
