#include "core/session/python_text.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/attention/formula.h"
#include "core/attention/kernel_input.h"
#include "core/attention/visible_keys.h"
#include "core/base/ascii.h"
#include "core/base/portable_number.h"
#include "core/base/utf8.h"

namespace qkv {
namespace {

// Controls, separators of lines, and characters that hide or turn around what stands beside them.
bool is_treacherous(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x61c || c == 0x200e || c == 0x200f ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

// "\n", "\x1b", "\u202e".
std::string escaped(char32_t c) {
  if (c == U'\n') return "\\n";
  if (c == U'\t') return "\\t";
  return c < 0x100 ? "\\x" + lower_ascii(hexadecimal(c, 2)) : "\\u" + lower_ascii(hexadecimal(c, 4));
}

// "[1, 0.5, nan]"
std::string row_text(const Matrix& matrix, Index row) {
  std::string text = "[";
  for (Index col = 0; col < matrix.cols(); ++col) {
    if (col > 0) text += ", ";
    text += portable_number(matrix(row, col));
  }
  return text + "]";
}

// The rows of a matrix, each on its line with its token, as stored, behind it.
std::string rows_text(const Session& session, MatrixKind kind, const Matrix& matrix, const std::string& indent) {
  const Axis axis = row_axis(kind);
  const bool has_tokens = axis == Axis::kQueries || axis == Axis::kKeys;
  const AxisNames names(session, axis, matrix.rows(), TokenStyle::kStored);
  std::string text;
  for (Index row = 0; row < matrix.rows(); ++row) {
    text += indent + row_text(matrix, row) + ",";
    if (has_tokens) text += "  # " + comment_text(names[row]);
    text += "\n";
  }
  return text;
}

std::string literal_of(const Session& session, const ScriptInput& input) {
  const Matrix& first = *input.matrices[0];
  if (row_axis(input.kind) == Axis::kSingle) return row_text(first, 0);
  if (!is_per_head(input.kind)) {
    return "[\n" + rows_text(session, input.kind, first, "    ") + "]";
  }
  std::string text = "[\n";
  for (std::size_t head = 0; head < input.matrices.size(); ++head) {
    text += "    [  # head " + std::to_string(head) + "\n" +
            rows_text(session, input.kind, *input.matrices[head], "        ") + "    ],\n";
  }
  return text + "]";
}

std::string shape_comment(MatrixKind kind) {
  switch (kind) {
    case MatrixKind::kQ:
      return "  # [heads, queries, d_k]";
    case MatrixKind::kK:
      return "  # [key/value heads, keys, d_k]";
    case MatrixKind::kV:
      return "  # [key/value heads, keys, d_v]";
    case MatrixKind::kX:
      return "  # [tokens, d_model]";
    case MatrixKind::kWq:
      return "  # [d_model, heads * d_k]";
    case MatrixKind::kWk:
      return "  # [d_model, key/value heads * d_k]";
    case MatrixKind::kWv:
      return "  # [d_model, key/value heads * d_v]";
    case MatrixKind::kWo:
      return "  # [heads * d_v, d_out]";
    case MatrixKind::kBias:
      return "  # [queries, keys], added to the scores";
    default:
      return "";
  }
}

template <class Values>
std::string list_text(const Values& values) {
  std::string text = "[";
  for (const auto value : values) text += (text.size() > 1 ? ", " : "") + portable_number(static_cast<float>(value));
  return text + "]";
}

// What the options of a session are beside its matrices.
std::string option_inputs(const AttentionOptions& options, const PythonDialect& dialect, bool loaded) {
  std::string text;
  if (!options.key_valid.empty()) {
    std::vector<std::uint8_t> valid = options.key_valid;
    for (std::uint8_t& value : valid) value = value != 0;
    text += "key_valid = " +
            (loaded ? filled_in(dialect.load_flags, "\"key_valid\"") : filled_in(dialect.make_flags, list_text(valid)));
    text += "  # [keys], 0 = padding\n";
  }
  if (!options.sink.empty()) {
    text += "sink = " + (loaded ? filled_in(dialect.load_numbers, "\"sink\"")
                                : filled_in(dialect.make_numbers, list_text(options.sink)));
    text += "  # [heads], a logit in the denominator alone\n";
  }
  return text;
}

std::string input_lines(const Session& session, const PythonDialect& dialect, const std::string& data_file) {
  const bool loaded = !data_file.empty();
  std::string text = "# The inputs are float32; everything is computed in float64.\n";
  if (loaded) text += "data = np.load(Path(__file__).with_name(" + python_string(data_file) + "))\n";
  for (const ScriptInput& input : script_inputs(session.problem)) {
    const std::string name(file_key(input.kind));
    const std::size_t start = text.size();
    text += name + " = " +
            (loaded ? filled_in(dialect.load_numbers, "\"" + name + "\"")
                    : filled_in(dialect.make_numbers, literal_of(session, input)));
    // Behind the first bracket of a matrix that takes many lines.
    const std::size_t open = text.find("[\n", start);
    text += "\n";
    text.insert(open == std::string::npos ? text.size() - 1 : open + 1, shape_comment(input.kind));
  }
  return text + option_inputs(session.problem.options, dialect, loaded);
}

std::string projection_lines(const ProjectedSource& source, const PythonDialect& dialect) {
  const auto product = [](const std::string& name, bool has_bias) {
    return "x @ w" + name + (has_bias ? " + b" + name : "");
  };
  std::string text =
      "\n\n"
      "def split(columns, count):  # [tokens, count * d] to [count, tokens, d]: each head has d columns\n"
      "    return columns.reshape(len(columns), count, -1)" +
      dialect.heads_first + "\n\n\n";
  text += "# Queries, keys and values are projections of x.\n";
  text += "q = split(" + product("q", source.bq.has_value()) + ", " + std::to_string(source.heads) + ")\n";
  text += "k = split(" + product("k", source.bk.has_value()) + ", " + std::to_string(source.kv_heads) + ")\n";
  text += "v = split(" + product("v", source.bv.has_value()) + ", " + std::to_string(source.kv_heads) + ")\n";
  return text;
}

// Names that the written numbers use.
std::string imported_values(const Problem& problem) {
  bool nan = false, inf = false;
  for (const ScriptInput& input : script_inputs(problem)) {
    for (const SharedMatrix& matrix : input.matrices) {
      nan = nan || matrix->array().isNaN().any();
      inf = inf || matrix->array().isInf().any();
    }
  }
  if (!nan && !inf) return "";
  return std::string("from math import ") + (inf && nan ? "inf, nan" : inf ? "inf" : "nan") + "\n";
}

}  // namespace

std::string filled_in(std::string_view text, std::string_view value) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t hit = text.find("{}", at);
    result += text.substr(at, hit - at);
    if (hit == std::string_view::npos) break;
    result += value;
    at = hit + 2;
  }
  return result;
}

std::vector<ScriptInput> script_inputs(const Problem& problem) {
  std::vector<ScriptInput> inputs;
  const auto add = [&](MatrixKind kind, const std::optional<SharedMatrix>& matrix) {
    if (matrix) inputs.push_back({kind, {*matrix}});
  };
  if (const auto* direct = std::get_if<DirectSource>(&problem.source)) {
    inputs = {{MatrixKind::kQ, direct->q}, {MatrixKind::kK, direct->k}, {MatrixKind::kV, direct->v}};
  } else {
    const auto& source = std::get<ProjectedSource>(problem.source);
    add(MatrixKind::kX, source.x);
    add(MatrixKind::kWq, source.wq);
    add(MatrixKind::kBq, source.bq);
    add(MatrixKind::kWk, source.wk);
    add(MatrixKind::kBk, source.bk);
    add(MatrixKind::kWv, source.wv);
    add(MatrixKind::kBv, source.bv);
  }
  add(MatrixKind::kWo, problem.wo);
  add(MatrixKind::kBo, problem.bo);
  add(MatrixKind::kBias, problem.options.bias);
  return inputs;
}

ScriptNeeds script_needs(const Problem& problem, const Shapes& shapes) {
  const AttentionOptions& options = problem.options;
  ScriptNeeds needs;
  needs.mask = options.causal || options.window || !options.key_valid.empty();
  needs.positions = options.causal || options.window || options.alibi;
  needs.groups = shapes.heads != shapes.kv_heads;
  for (const ScriptInput& input : script_inputs(problem)) {
    for (const SharedMatrix& matrix : input.matrices) needs.not_finite = needs.not_finite || !matrix->allFinite();
  }
  const VisibleKeys visible(kernel_mask(options, shapes), shapes.nq, shapes.nk);
  for (Index row = 0; row < shapes.nq && !needs.dead_rows; ++row) {
    needs.dead_rows = visible.count(row, 0, shapes.nk) == 0;
  }
  return needs;
}

std::string python_string(std::string_view text) {
  std::string literal = "\"";
  for (std::size_t pos = 0; pos < text.size();) {
    const char32_t c = next_code_point(text, pos);
    if (c == U'"' || c == U'\\') {
      literal += '\\';
      literal += static_cast<char>(c);
    } else if (is_treacherous(c)) {
      literal += escaped(c);
    } else {
      append_utf8(literal, c);
    }
  }
  return literal + "\"";
}

std::string python_scalar(float value) { return portable_number(static_cast<double>(value)); }

std::string comment_text(std::string_view text, std::size_t most) {
  std::string line;
  std::size_t count = 0;
  for (std::size_t pos = 0; pos < text.size(); ++count) {
    if (count == most) return line + "…";
    const char32_t c = next_code_point(text, pos);
    if (is_treacherous(c)) {
      line += escaped(c);
    } else {
      append_utf8(line, c);
    }
  }
  return line;
}

std::string script_start(const Session& session, const Shapes& shapes, const PythonDialect& dialect,
                         const std::string& data_file) {
  // An encoding is declared by what one of the first two lines says: the title stands below them.
  std::string text = "# -*- coding: utf-8 -*-\n# Attention step by step in " + dialect.library +
                     ". Run it to print the weights and the result;\n"
                     "# give it a file name, such as steps.npz, and it saves every step there.\n#\n";
  if (!session.title.empty()) text += "# " + comment_text(session.title, 100) + "\n";
  text += "# " + attention_formula(session.problem.options) + "\n# " + std::to_string(shapes.nq) + " queries, " +
          std::to_string(shapes.nk) + " keys, " + std::to_string(shapes.heads) +
          (shapes.heads == 1 ? " head" : " heads") + "\n";
  text += "import sys\n";
  if (data_file.empty()) {
    text += imported_values(session.problem);
  } else {
    text += "from pathlib import Path\n";
  }
  text += "\n" + dialect.imports + "\n" + input_lines(session, dialect, data_file);
  if (const auto* projected = std::get_if<ProjectedSource>(&session.problem.source)) {
    text += projection_lines(*projected, dialect);
  }
  return text + "heads, n_q, d_k = q.shape\nkv_heads, n_k, d_v = v.shape\n\n";
}

std::string position_lines(const AttentionOptions& options, const Shapes& shapes, const std::string& library) {
  std::string text =
      "# Positions of the queries (down) and of the keys (across).\ni = " + library + ".arange(n_q)[:, None]";
  if (shapes.nq != shapes.nk) {
    text += options.align == CausalAlign::kBottomRight ? " + n_k - n_q  # the last query stands at the last key"
                                                       : "  # the first query stands at the first key";
  }
  return text + "\nj = " + library + ".arange(n_k)[None, :]\n\n";
}

std::string mask_lines(const AttentionOptions& options) {
  std::string text;
  if (options.causal) text += "keep &= j <= i  # causal: no key after the query\n";
  if (options.window) {
    text += "keep &= abs(i - j) < " + std::to_string(*options.window) + "  # window\n";
  }
  if (!options.key_valid.empty()) text += "keep &= key_valid  # padding is hidden from every query\n";
  return text;
}

std::string scale_lines(const AttentionOptions& options) {
  if (!options.scale)
    return "# Divided by √d_k, so that the scores do not grow with d_k.\nscaled = scores / d_k**0.5\n";
  return "# Times the scale of this session.\nscaled = scores * " + python_scalar(*options.scale) + "\n";
}

std::string slope_lines(int heads, const std::string& library, const std::string& join) {
  const auto power = static_cast<int>(std::bit_floor(static_cast<unsigned>(heads)));
  const std::string first =
      "2.0 ** (-8 * " + library + ".arange(1, " + std::to_string(power + 1) + ") / " + std::to_string(power) + ")";
  std::string text = "# ALiBi: far keys lose, each head at its own rate.\nslopes = ";
  if (power == heads) return text + first + "\n";
  // Head count no power of two: every second slope of twice that power follows.
  const std::string second = "2.0 ** (-8 * " + library + ".arange(1, " + std::to_string(2 * (heads - power)) +
                             ", 2) / " + std::to_string(2 * power) + ")";
  return text + join + "([" + first + ", " + second + "])\n";
}

std::string output_lines(const Problem& problem, const std::string& heads_first) {
  std::string text = "\n# The heads side by side.\nconcat = heads_out" + heads_first + ".reshape(n_q, heads * d_v)\n";
  if (problem.wo) text += std::string("out = concat @ wo") + (problem.bo ? " + bo" : "") + "\n";
  return text;
}

std::string print_lines(const Problem& problem) {
  std::string text = "print(\"attn, the weights [head, query, key]:\")\nprint(attn)\n";
  if (problem.wo) return text + "print(\"out [query, d_out]:\")\nprint(out)\n";
  return text + "print(\"out of the heads [head, query, d_v]:\")\nprint(heads_out)\n";
}

std::string save_arguments(const Problem& problem, const std::string& suffix, const std::string& keep) {
  std::string text;
  for (const std::string name : {"q", "k", "v", "scores", "scaled", "keep", "attn", "heads_out", "concat", "out"}) {
    if (name == "out" && !problem.wo) continue;
    text += (text.empty()     ? ""
             : name == "attn" ? ",\n             "
                              : ", ") +
            name + "=" + (name == "keep" ? keep : name + suffix);
  }
  return text;
}

}  // namespace qkv
