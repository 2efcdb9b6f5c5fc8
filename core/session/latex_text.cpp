#include "core/session/latex_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/base/ascii.h"
#include "core/base/number_text.h"
#include "core/base/utf8.h"

namespace qkv {
namespace {

enum class Script { kPlain, kCjk, kEmoji, kOther };

Script script_of(char32_t c) {
  if (c < 0x180 || c == 0xfffd) return Script::kPlain;  // LuaTeX takes U+FFFD for broken input: it is named
  if (is_cjk(c) || (c >= 0x3000 && c <= 0x303f) || (c >= 0xff00 && c <= 0xffef)) return Script::kCjk;
  if ((c >= 0x1f000 && c <= 0x1faff) || (c >= 0x2600 && c <= 0x27bf)) return Script::kEmoji;
  return Script::kOther;
}

std::string ascii_macro(char32_t c) { return "\\ascii{" + std::to_string(static_cast<unsigned>(c)) + "}"; }

// A character of the main font.
std::string plain(char32_t c, bool show_spaces) {
  if (c == U' ') return show_spaces ? "\\textvisiblespace{}" : " ";
  if (c == U'\n') return show_spaces ? ascii_macro(U'\\') + "n" : " ";
  if (c == U'\t') return show_spaces ? ascii_macro(U'\\') + "t" : " ";
  if (c < 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0xad || c == 0xfffd)
    return "\\ascii{91}" + code_point_name(c) + "\\ascii{93}";
  if (c == U'-') return "{-}";  // two in a row would become a dash
  const bool is_safe = c >= 0x80 || (c >= U'0' && c <= U'9') || (c >= U'A' && c <= U'Z') || (c >= U'a' && c <= U'z') ||
                       std::u32string_view(U".,:;()!?/+=*@").find(c) != std::u32string_view::npos;
  if (!is_safe) return ascii_macro(c);
  std::string text;
  append_utf8(text, c);
  return text;
}

// Characters that only steer how others look: a run of emoji keeps them, elsewhere they are left out.
bool is_invisible(char32_t c) {
  return c == 0x61c || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) ||
         c == 0xfeff || (c >= 0xfe00 && c <= 0xfe0f) || (c >= 0xe0000 && c <= 0xe0fff);
}

// A run of characters of one script.
struct Run {
  Script script = Script::kPlain;
  std::string text, names;
};

std::string run_text(const Run& run) {
  switch (run.script) {
    case Script::kPlain:
      return run.text;
    case Script::kCjk:
      return "\\cjk{" + run.text + "}";
    case Script::kOther:
      return "\\other{" + run.text + "}";
    case Script::kEmoji:
      return "\\emoji{" + run.text + "}{" + run.names + "}";
  }
  return "";
}

// The cells that are shown; 0 in place of dots.
Matrix shown_cells(const MatrixSource& source, const std::vector<Index>& rows, const std::vector<Index>& cols) {
  Matrix cells = Matrix::Zero(static_cast<Index>(rows.size()), static_cast<Index>(cols.size())), cell(1, 1);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t c = 0; c < cols.size(); ++c) {
      if (rows[r] < 0 || cols[c] < 0) continue;
      source.read({rows[r], cols[c], 1, 1}, cell);
      cells(static_cast<Index>(r), static_cast<Index>(c)) = cell(0, 0);
    }
  }
  return cells;
}

bool is_whole(float value) { return !std::isfinite(value) || (value == std::round(value) && std::abs(value) < 1e6F); }

// "1.2e+08" as "1.2\cdot 10^{8}".
std::string with_power(const std::string& text) {
  const std::size_t e = text.find('e');
  if (e == std::string::npos) return text;
  int exponent = 0;
  const std::size_t first = e + (text[e + 1] == '+' ? 2 : 1);  // from_chars reads no plus
  std::from_chars(text.data() + first, text.data() + text.size(), exponent);
  return text.substr(0, e) + "\\cdot 10^{" + std::to_string(exponent) + "}";
}

bool has_tokens(Axis axis) { return axis == Axis::kQueries || axis == Axis::kKeys; }

std::string token_text(const std::string& token) {
  constexpr std::size_t kMostOfToken = 16;
  return "\\token{" + latex_text(token, kMostOfToken, true) + "}";
}

}  // namespace

std::string latex_preamble(std::string_view body) {
  const auto uses = [&](std::string_view macro) { return body.find(macro) != std::string_view::npos; };
  const bool ascii_only = is_ascii(body);  // all that pdflatex can set
  std::string text = ascii_only ? "% Compile with pdflatex, xelatex or lualatex.\n"
                                : "% Compile with xelatex or lualatex: some tokens are not ASCII.\n";
  text +=
      "\\documentclass{article}\n\\usepackage[a4paper,margin=2cm]{geometry}\n\\usepackage{amsmath}\n"
      "\\usepackage{graphicx}\n";
  if (!ascii_only) text += "\\usepackage{fontspec}\n";
  if (uses("\\cjk{")) {
    text +=
        "\\IfFontExistsTF{Noto Sans CJK TC}{\\newfontfamily\\cjkfont{Noto Sans CJK TC}}{%\n"
        "  \\IfFontExistsTF{FandolHei}{\\newfontfamily\\cjkfont{FandolHei}}{\\newcommand\\cjkfont{}}}\n"
        "\\newcommand\\cjk[1]{{\\cjkfont #1}}\n";
  }
  if (uses("\\other{")) {
    text +=
        "\\IfFontExistsTF{DejaVu Sans}{\\newfontfamily\\otherfont{DejaVu Sans}}{%\n"
        "  \\IfFontExistsTF{Noto Sans}{\\newfontfamily\\otherfont{Noto Sans}}{\\newcommand\\otherfont{}}}\n"
        "\\newcommand\\other[1]{{\\otherfont #1}}\n";
  }
  if (uses("\\emoji{")) {
    text +=
        "% An emoji, or its code point where no font has it.\n"
        "\\IfFontExistsTF{Noto Emoji}{\\newfontfamily\\emojifont{Noto Emoji}"
        "\\newcommand\\emoji[2]{{\\emojifont #1}}}{%\n"
        "  \\newcommand\\emoji[2]{#2}}\n";
  }
  if (uses("\\ascii{")) text += "\\newcommand\\ascii[1]{{\\ttfamily\\symbol{#1}}}\n";
  return text +
         "\\newcommand\\token[1]{\\text{\\footnotesize\\ttfamily #1}}\n"
         "% As wide as it is, but not wider than the page.\n"
         "\\newcommand\\fit[1]{\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}"
         "{$\\displaystyle #1$}}\n"
         "\\renewcommand\\arraystretch{1.15}\n"
         "\\setlength\\parindent{0pt}\n";
}

std::string latex_text(std::string_view text, std::size_t most, bool show_spaces) {
  std::string result;
  Run run;
  std::size_t count = 0;
  for (std::size_t pos = 0; pos < text.size();) {
    const char32_t c = next_code_point(text, pos);
    const bool joins = run.script != Script::kPlain && joins_previous(c);
    if (is_invisible(c) && !joins) continue;
    if (count++ == most) {
      result += run_text(run);
      return result + "\\dots{}";
    }
    const Script script = joins ? run.script : script_of(c);
    if (script != run.script) {
      result += run_text(run);
      run = Run{script, "", ""};
    }
    if (script == Script::kPlain) {
      run.text += plain(c, show_spaces);
      continue;
    }
    append_utf8(run.text, c);
    run.names += (run.names.empty() ? "" : " ") + code_point_name(c);
  }
  return result + run_text(run);
}

std::string latex_number(double value, int decimals) {
  if (std::isnan(value)) return "\\mathrm{NaN}";
  if (std::isinf(value)) return value < 0 ? "-\\infty" : "\\infty";
  // A small number stays in its column, as 0.00.
  const bool is_large = std::abs(value) >= 1e6;
  return with_power(is_large ? format_value(value, decimals, false) : format_fixed(value, decimals, false));
}

std::string latex_exact(float value) { return with_power(format_shortest(value)); }

std::vector<Index> shown_indices(Index count) {
  constexpr Index kMostShown = 10, kFirst = 6, kLast = 2;
  std::vector<Index> indices;
  for (Index i = 0; i < count; ++i) {
    if (count <= kMostShown || i < kFirst || i >= count - kLast) {
      indices.push_back(i);
    } else if (indices.back() >= 0) {
      indices.push_back(-1);
    }
  }
  return indices;
}

std::string latex_matrix(const Session& session, const LatexMatrix& matrix) {
  const Index row_count = matrix.source->rows(), col_count = matrix.source->cols();
  const std::vector<Index> rows = shown_indices(row_count), cols = shown_indices(col_count);
  const Matrix cells = shown_cells(*matrix.source, rows, cols);
  const bool all_whole = std::all_of(cells.data(), cells.data() + cells.size(), is_whole);
  const int decimals = all_whole ? 0 : session.view.decimals;
  // As stored: what is not ASCII asks for other compilers and fonts.
  constexpr TokenStyle kStyle = TokenStyle::kStored;
  const AxisNames row_names(session, matrix.rows, row_count, kStyle);
  const AxisNames col_names(session, matrix.cols, col_count, kStyle);
  const bool heads_rows = has_tokens(matrix.rows), heads_cols = has_tokens(matrix.cols);

  std::string text = "\\[\\fit{" + matrix.name + " = \\begin{array}{" + (heads_rows ? "r|" : "") +
                     std::string(cols.size(), 'r') + "}\n";
  if (heads_cols) {
    for (std::size_t c = 0; c < cols.size(); ++c) {
      text += c > 0 || heads_rows ? " & " : "";
      text += cols[c] < 0 ? "\\cdots" : token_text(col_names[cols[c]]);
    }
    text += " \\\\ \\hline\n";
  }
  for (std::size_t m = 0; m < rows.size(); ++m) {
    const Index r = rows[m];
    if (heads_rows) text += r < 0 ? "\\vdots" : token_text(row_names[r]);
    for (std::size_t n = 0; n < cols.size(); ++n) {
      const Index c = cols[n];
      if (n > 0 || heads_rows) text += " & ";
      if (r < 0 || c < 0) {
        text += r >= 0 ? "\\cdots" : c >= 0 ? "\\vdots" : "\\ddots";
        continue;
      }
      const bool hidden = matrix.hidden != LatexMatrix::Hidden::kShown &&
                          mask_reason(session.problem.options, row_count, col_count, r, c) != MaskReason::kVisible;
      if (!hidden) {
        text += latex_number(cells(static_cast<Index>(m), static_cast<Index>(n)), decimals);
      } else {
        text += matrix.hidden == LatexMatrix::Hidden::kZero ? "0" : "-\\infty";
      }
    }
    text += " \\\\\n";
  }
  return text + "\\end{array}}\\]\n";
}

}  // namespace qkv
