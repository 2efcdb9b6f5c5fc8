#include "app/cli/table.h"

#include <algorithm>
#include <string_view>

#include "core/base/utf8.h"

namespace qkv::cli {
namespace {

// Columns that `text` takes in a terminal: CJK characters take two, marks that join the one before take none.
std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t pos = 0; pos < text.size();) {
    const char32_t code_point = next_code_point(text, pos);
    if (!joins_previous(code_point)) columns += is_cjk(code_point) ? 2 : 1;
  }
  return columns;
}

}  // namespace

std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t numbers_from) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string gap(widths[i] - columns_of(row[i]), ' ');
      line += (i < numbers_from ? row[i] + gap : gap + row[i]) + "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace qkv::cli
