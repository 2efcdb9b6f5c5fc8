#include "core/tensor_io/table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "core/base/number_text.h"
#include "core/base/utf8.h"
#include "core/tensor_io/name_text.h"

namespace qkv {

namespace {

constexpr char kSpaces = ' ';  // as a separator: one or more

struct Cell {
  std::string text;
  bool quoted = false;
};

struct Row {
  std::size_t line = 0;  // the first of its lines, from 1
  std::vector<Cell> cells;
};

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  text.remove_suffix(text.size() - 1 - text.find_last_not_of(" \t"));  // npos + 1 = 0
  return text;
}

std::string line_text(std::size_t line) { return "line " + std::to_string(line); }

// Reads rows one after the other.
class RowReader {
 public:
  RowReader(std::string_view text, char separator, ReadProgress* progress = nullptr)
      : text_(text), separator_(separator), progress_(progress) {}

  // The next row that is not blank in `row`; false at the end.
  Result<bool> next(Row& row) {
    while (pos_ < text_.size()) {
      row.line = line_;
      row.cells.clear();
      const std::size_t begin = pos_;
      if (const Status status = read_row(row); !status.ok()) return status.error();
      if (const Status on = count_read(progress_, pos_ - begin); !on.ok()) return on.error();
      const bool blank = row.cells.size() == 1 && row.cells[0].text.empty() && !row.cells[0].quoted;
      if (!blank) return true;
    }
    return false;
  }

 private:
  Status read_row(Row& row) {
    for (bool more = true; more;) {
      skip_spaces();
      if (separator_ == kSpaces && !row.cells.empty() && at_end_of_line()) break;  // spaces that end a line
      Cell& cell = row.cells.emplace_back();
      if (pos_ < text_.size() && text_[pos_] == '"') {
        const Status status = read_quoted(cell);
        if (!status.ok()) return status;
      } else {
        const std::size_t end = std::min(text_.find_first_of(cell_ends(), pos_), text_.size());
        std::string_view content = text_.substr(pos_, end - pos_);
        pos_ = end;
        if (at_end_of_line() && content.ends_with('\r')) content.remove_suffix(1);
        cell.text = trimmed(content);
      }
      more = pos_ < text_.size() && !at_end_of_line();
      if (more && separator_ != kSpaces) ++pos_;
    }
    take_end_of_line();
    return Done{};
  }

  // What ends a cell without quotes. A lone carriage return is a character like others.
  std::string_view cell_ends() const {
    switch (separator_) {
      case '\t':
        return "\t\n";
      case ';':
        return ";\n";
      case ',':
        return ",\n";
      default:
        return " \t\n";
    }
  }

  Status read_quoted(Cell& cell) {
    const std::size_t first_line = line_;
    cell.quoted = true;
    for (++pos_; pos_ < text_.size(); ++pos_) {
      const char c = text_[pos_];
      if (c == '\n') ++line_;
      if (c != '"') {
        cell.text += c;
      } else if (text_.substr(pos_ + 1).starts_with('"')) {
        cell.text += text_[++pos_];
      } else {
        ++pos_;
        if (separator_ != kSpaces) skip_spaces();
        if (at_end_of_line() || cell_ends().find(text_[pos_]) != std::string_view::npos) return Done{};
        return bad_input(line_text(line_) + ": text follows a closing quote: write a quote in a cell as \"\"");
      }
    }
    return bad_input(line_text(first_line) + ": a quote is opened and never closed");
  }

  void skip_spaces() {
    while (pos_ < text_.size() && (text_[pos_] == ' ' || (text_[pos_] == '\t' && separator_ != '\t'))) ++pos_;
  }
  bool at_end_of_line() const {
    const std::string_view rest = text_.substr(pos_);
    return rest.empty() || rest.starts_with('\n') || rest.starts_with("\r\n") || rest == "\r";
  }
  void take_end_of_line() {
    while (pos_ < text_.size() && text_[pos_] == '\r') ++pos_;
    if (pos_ < text_.size()) ++pos_, ++line_;
  }

  std::string_view text_;
  char separator_;
  ReadProgress* progress_;
  std::size_t pos_ = 0;
  std::size_t line_ = 1;
};

// Whether the separator divides the first `looked` rows alike, into two cells or more.
bool divides_alike(std::string_view text, char separator, int looked) {
  RowReader reader(text, separator);
  Row row;
  std::optional<std::size_t> cells;
  for (int i = 0; i < looked; ++i) {
    const Result<bool> more = reader.next(row);
    if (!more.ok()) return looked == 1 && row.cells.size() > 1;  // the row that is wrong tells most
    if (!more.value()) break;
    if (cells && *cells != row.cells.size()) return false;
    cells = row.cells.size();
  }
  return cells && *cells > 1;
}

char separator_of(std::string_view text) {
  // Where none divides all alike, the one that the first row has, so that the error is about it.
  for (const int looked : {32, 1}) {
    for (const char candidate : {'\t', ';', ','}) {
      if (divides_alike(text, candidate, looked)) return candidate;
    }
  }
  return kSpaces;
}

bool is_number(const Cell& cell) { return parse_double(cell.text).has_value(); }

// Gathers the rows and decides at the end whether the first column holds names.
class TableBuilder {
 public:
  Status add(Row& row) {
    if (!first_line_) {
      first_line_ = row.line;
      cells_ = row.cells.size();
    }
    if (row.cells.size() != cells_) {
      const std::string count = std::to_string(row.cells.size()) + (row.cells.size() == 1 ? " cell" : " cells");
      return bad_input(line_text(row.line) + " has " + count + " but " + line_text(*first_line_) + " has " +
                       std::to_string(cells_));
    }
    ++rows_;
    for (std::size_t column = 0; column < cells_; ++column) {
      const Cell& cell = row.cells[column];
      const std::optional<double> number = parse_double(cell.text);
      if (!number && column > 0) return not_a_number(row.line, column, cell);
      if (!number && !first_text_) first_text_ = not_a_number(row.line, column, cell);
      if (!number) ++texts_in_first_column_;
      values_.push_back(number.value_or(0));
      values32_.push_back(number ? nearest_float(cell.text, *number) : 0);
    }
    names_.push_back(std::move(row.cells[0].text));
    return Done{};
  }

  void set_header(Row& row) {
    first_line_ = row.line;
    cells_ = row.cells.size();
    corner_is_empty_ = cells_ > 1 && row.cells[0].text.empty();
    for (Cell& cell : row.cells) header_.push_back(std::move(cell.text));
  }

  Result<Table> finish() {
    const bool has_names = cells_ > 1 && (corner_is_empty_ || 2 * texts_in_first_column_ > rows_);
    if (!has_names && first_text_) return *first_text_;
    if (rows_ == 0) return bad_input("the table holds no numbers");
    Table table;
    table.rows = rows_;
    table.columns = cells_ - (has_names ? 1 : 0);
    if (has_names) {
      table.row_names = std::move(names_);
      if (!header_.empty()) header_.erase(header_.begin());
      remove_first_column(values_);
      remove_first_column(values32_);
    }
    table.column_names = std::move(header_);
    table.values = std::move(values_);
    table.values32 = std::move(values32_);
    return table;
  }

 private:
  // Rounded once from the text: float64 in between could round twice.
  static float nearest_float(std::string_view text, double number) {
    const float infinity = std::numeric_limits<float>::infinity();
    return parse_float(text).value_or(number < 0 ? -infinity : infinity);
  }

  static Error not_a_number(std::size_t line, std::size_t column, const Cell& cell) {
    const std::string place = line_text(line) + ", column " + std::to_string(column + 1);
    if (cell.text.empty()) return bad_input(place + " is empty: write nan where a number is missing");
    std::string with_point = cell.text;
    std::ranges::replace(with_point, ',', '.');
    const bool comma = with_point != cell.text && parse_double(with_point).has_value();
    return bad_input(place + ": " + quoted_name(cell.text) + " is not a number" +
                     (comma ? "; write the decimal point as \".\"" : ""));
  }

  template <class T>
  void remove_first_column(std::vector<T>& values) const {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i % cells_ != 0) values[kept++] = values[i];
    }
    values.resize(kept);
  }

  std::vector<std::string> header_;
  std::vector<std::string> names_;  // the first cell of each row
  std::vector<double> values_;      // [rows, cells]
  std::vector<float> values32_;
  std::size_t rows_ = 0;
  std::size_t cells_ = 0;                  // of each row
  std::optional<std::size_t> first_line_;  // that has cells
  std::size_t texts_in_first_column_ = 0;
  std::optional<Error> first_text_;  // in the first column, an error unless that holds names
  bool corner_is_empty_ = false;
};

// `second` is the row after it, without cells where there is none.
bool is_header(const Row& first, const Row& second) {
  if (first.cells.size() == 1) return !is_number(first.cells[0]) && second.cells.size() == 1;
  if (first.cells[0].text.empty() && !second.cells.empty()) return true;
  std::size_t texts = 0;
  for (std::size_t i = 1; i < first.cells.size(); ++i) {
    if (!first.cells[i].text.empty() && !is_number(first.cells[i])) ++texts;
  }
  return 2 * texts > first.cells.size() - 1;
}

}  // namespace

Result<Table> parse_table(std::string_view text, ReadProgress* progress) {
  text = without_byte_order_mark(text);
  if (progress != nullptr) progress->expect(text.size());
  if (!is_valid_utf8(text)) return bad_input("the text is not valid UTF-8: save it again as UTF-8");
  if (text.find('\0') != std::string_view::npos) return bad_input("the text holds zero bytes: it is no table");
  RowReader reader(text, separator_of(text), progress);
  Row first, row;
  Result<bool> more = reader.next(first);
  if (!more.ok()) return more.error();
  if (!more.value()) return bad_input("the table is empty");
  more = reader.next(row);
  if (!more.ok()) return more.error();
  if (!more.value()) row.cells.clear();

  TableBuilder builder;
  if (is_header(first, row)) {
    builder.set_header(first);
  } else if (const Status added = builder.add(first); !added.ok()) {
    return added.error();
  }
  while (more.ok() && more.value()) {
    if (const Status added = builder.add(row); !added.ok()) return added.error();
    more = reader.next(row);
  }
  if (!more.ok()) return more.error();
  return builder.finish();
}

Result<std::vector<float>> float32_values(const Table& table, std::size_t first, std::size_t count) {
  for (std::size_t i = first; i < first + count; ++i) {
    if (!std::isinf(table.values32[i]) || std::isinf(table.values[i])) continue;
    return bad_input("number " + std::to_string(i - first) + " of the array is beyond float32's range");
  }
  const auto begin = table.values32.begin() + static_cast<std::ptrdiff_t>(first);
  return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(count));
}

}  // namespace qkv
