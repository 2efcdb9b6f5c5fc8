// A matrix written as text: .csv, .tsv, or what a spreadsheet puts on the clipboard.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/read_progress.h"
#include "core/base/result.h"

namespace qkv {

struct Table {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<double> values;             // [rows, columns]
  std::vector<float> values32;            // the same texts rounded once to float32; ±Inf beyond its range
  std::vector<std::string> column_names;  // [columns], or empty: the file has no header
  std::vector<std::string> row_names;     // [rows], or empty: the first column holds numbers
};

// UTF-8, lines ended by LF or CRLF, cells separated by tabs, ";", "," or spaces: the first of these that divides all
// lines alike. Numbers as parse_double reads them. A cell may be quoted ("" is a quote in it) and then hold anything.
// Blank lines are left out.
//
// The first line is a header if most of its cells after the first are text, or if its first cell is empty; the first
// column holds names if most of its cells are text, or if the header has an empty cell above it. Any other text is an
// error with its line and column: a typing error shall not pass as a name. Other errors: rows of different lengths
// (both named), an empty cell, no numbers. kBadInput throughout, or kCancelled.
Result<Table> parse_table(std::string_view text, ReadProgress* progress = nullptr);

// `count` numbers from `first` on as float32; kBadInput where one is finite and beyond its range.
Result<std::vector<float>> float32_values(const Table& table, std::size_t first, std::size_t count);

}  // namespace qkv
