// Matrices as comma- or tab-separated text: a row to a line, numbers alone or with the names of rows and columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace qkv {

// Any texts. Those that could be taken for something else (a separator, a quote, white space at an end) are quoted.
struct TableNames {
  std::vector<std::string> rows, columns;  // one of each
};

// `values` [·, cols], row-major, cols > 0. Every row ends with "\n". Numbers read back to the same bits, in NumPy
// (np.loadtxt(delimiter=",")) as here: shortest decimals, "nan", "inf", "-inf"; bytes as whole numbers.
//
// With `names`, the first line is an empty cell and the columns, the first cell of each other line is its row:
// parse_table gives back the same names, and NumPy reads the numbers by
// np.loadtxt(delimiter=",", skiprows=1, usecols=range(1, cols + 1), comments=None, quotechar='"').
std::string separated_text(std::span<const float> values, std::size_t cols, char separator = ',',
                           const TableNames* names = nullptr);
std::string separated_text(std::span<const double> values, std::size_t cols, char separator = ',',
                           const TableNames* names = nullptr);
std::string separated_text(std::span<const std::uint8_t> values, std::size_t cols, char separator = ',',
                           const TableNames* names = nullptr);

}  // namespace qkv
