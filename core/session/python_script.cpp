#include "core/session/python_script.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/attention/formula.h"
#include "core/attention/kernel_input.h"
#include "core/attention/problem_inputs.h"
#include "core/attention/visible_keys.h"
#include "core/base/portable_number.h"
#include "core/session/python_text.h"

namespace qkv {
namespace {

// `text` with each `{}` replaced.
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

std::string literal_of(const Session& session, const ProblemInput& input) {
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
  for (const ProblemInput& input : inputs_of(session.problem)) {
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
      dialect.swap_first + "\n\n\n";
  text += "# Queries, keys and values are projections of x.\n";
  text += "q = split(" + product("q", source.bq.has_value()) + ", " + std::to_string(source.heads) + ")\n";
  text += "k = split(" + product("k", source.bk.has_value()) + ", " + std::to_string(source.kv_heads) + ")\n";
  text += "v = split(" + product("v", source.bv.has_value()) + ", " + std::to_string(source.kv_heads) + ")\n";
  return text;
}

// Names that the written numbers use.
std::string imported_values(const Problem& problem) {
  bool nan = false, inf = false;
  for (const ProblemInput& input : inputs_of(problem)) {
    for (const SharedMatrix& matrix : input.matrices) {
      nan = nan || matrix->array().isNaN().any();
      inf = inf || matrix->array().isInf().any();
    }
  }
  if (!nan && !inf) return "";
  return std::string("from math import ") + (inf && nan ? "inf, nan" : inf ? "inf" : "nan") + "\n";
}

std::string rope_lines(const Rope& rope, const PythonDialect& dialect) {
  const bool half = rope.style == RopeStyle::kHalf;
  const std::string cos = dialect.module + ".cos(angle)", sin = dialect.module + ".sin(angle)";
  return "\n# Rotary position embedding: pairs of columns turn by position * base**(-2 * pair / d_k).\n"
         "def rotate(rows):  # [heads, tokens, d_k]\n"
         "    turned = rows" +
         dialect.copy + "\n    position = " + dialect.module +
         ".arange(1, rows.shape[1])  # the first token stands at 0 and stays as it is\n"
         "    for pair in range(d_k // 2):\n" +
         std::string(half ? "        a, b = pair, pair + d_k // 2\n" : "        a, b = 2 * pair, 2 * pair + 1\n") +
         "        angle = position * " + python_scalar(rope.base) +
         " ** (-2 * pair / d_k)\n"
         "        x, y = rows[:, 1:, a], rows[:, 1:, b]\n"
         "        turned[:, 1:, a] = x * " +
         cos + " - y * " + sin + "\n        turned[:, 1:, b] = y * " + cos + " + x * " + sin +
         "\n"
         "    return turned\n\n\n";
}

}  // namespace

ScriptNeeds script_needs(const Problem& problem, const Shapes& shapes) {
  const AttentionOptions& options = problem.options;
  ScriptNeeds needs;
  needs.mask = options.causal || options.window || !options.key_valid.empty();
  needs.positions = options.causal || options.window || options.alibi;
  needs.groups = shapes.heads != shapes.kv_heads;
  for (const ProblemInput& input : inputs_of(problem)) {
    for (const SharedMatrix& matrix : input.matrices) needs.not_finite = needs.not_finite || !matrix->allFinite();
  }
  const VisibleKeys visible(kernel_mask(options, shapes), shapes.nq, shapes.nk);
  for (Index row = 0; row < shapes.nq && !needs.dead_rows; ++row) {
    needs.dead_rows = visible.count(row, 0, shapes.nk) == 0;
  }
  return needs;
}

std::string script_start(const Session& session, const Shapes& shapes, const PythonDialect& dialect,
                         const std::string& data_file) {
  // An encoding is declared by what one of the first two lines says: the title stands below them.
  std::string text = "# -*- coding: utf-8 -*-\n# Attention step by step in " + dialect.title +
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

std::string position_lines(const AttentionOptions& options, const Shapes& shapes, const PythonDialect& dialect) {
  std::string text =
      "# Positions of the queries (down) and of the keys (across).\ni = " + dialect.module + ".arange(n_q)[:, None]";
  if (shapes.nq != shapes.nk) {
    text += options.align == CausalAlign::kBottomRight ? " + n_k - n_q  # the last query stands at the last key"
                                                       : "  # the first query stands at the first key";
  }
  return text + "\nj = " + dialect.module + ".arange(n_k)[None, :]\n\n";
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

std::string score_lines(const AttentionOptions& options, const ScriptNeeds& needs, const PythonDialect& dialect) {
  std::string text, q = "q", k = "k";
  if (options.rope) {
    text += rope_lines(*options.rope, dialect) + "q_turned, k_turned = rotate(q), rotate(k)\n\n";
    q = "q_turned", k = "k_turned";
  }
  if (needs.groups) {
    text +=
        "# Query heads share key/value heads: each of those is used heads / kv_heads times in a row.\n"
        "k_shared = " +
        filled_in(dialect.repeat_heads, k) + "\nv_shared = " + filled_in(dialect.repeat_heads, "v") + "\n\n";
    k = "k_shared";
  }
  return text + "# Scores: each query times each key. [heads, n_q, n_k]\nscores = " + q + " @ " + k +
         dialect.swap_last + "\n\n";
}

std::string scale_lines(const AttentionOptions& options, const PythonDialect& dialect) {
  std::string text;
  if (options.scale) {
    text = "# Times the scale of this session.\nscaled = scores * " + python_scalar(*options.scale) + "\n";
  } else {
    text = "# Divided by √d_k, so that the scores do not grow with d_k.\nscaled = scores / d_k**0.5\n";
  }
  if (!options.softcap) return text;
  const std::string cap = python_scalar(*options.softcap);
  return text + "# Softcap: no score leaves -cap … cap.\nscaled = " + cap + " * " + dialect.module + ".tanh(scaled / " +
         cap + ")\n";
}

std::string slope_lines(int heads, const PythonDialect& dialect) {
  const auto power = static_cast<int>(std::bit_floor(static_cast<unsigned>(heads)));
  const std::string first = "2.0 ** (-8 * " + dialect.module + ".arange(1, " + std::to_string(power + 1) + ") / " +
                            std::to_string(power) + ")";
  std::string text = "# ALiBi: far keys lose, each head at its own rate.\nslopes = ";
  if (power == heads) return text + first + "\n";
  // Head count no power of two: every second slope of twice that power follows.
  const std::string second = "2.0 ** (-8 * " + dialect.module + ".arange(1, " + std::to_string(2 * (heads - power)) +
                             ", 2) / " + std::to_string(2 * power) + ")";
  return text + dialect.join + "([" + first + ", " + second + "])\n";
}

std::string hidden_comment(const ScriptNeeds& needs) {
  return needs.dead_rows ? "# Hidden keys have weight 0, and so has all that a query sees that sees no key.\n"
                         : "# Hidden keys have weight 0.\n";
}

std::string heads_out_lines(const ScriptNeeds& needs, const PythonDialect& dialect) {
  const std::string v = needs.groups ? "v_shared" : "v";
  if (!needs.mask) return "\n# Each query's mix of the values. [heads, n_q, d_v]\nheads_out = attn @ " + v + "\n";
  return "\n# Each query's mix of the values that it sees; hidden ones are not touched. [heads, n_q, d_v]\n"
         "heads_out = " +
         filled_in(dialect.zeros, "heads, n_q, d_v") +
         "\n"
         "for row in range(n_q):\n"
         "    see = keep[row]\n"
         "    heads_out[:, row] = " +
         dialect.module + ".einsum(\"hk,hkd->hd\", attn[:, row, see], " + v + "[:, see])\n";
}

std::string output_lines(const Problem& problem, const PythonDialect& dialect) {
  std::string text =
      "\n# The heads side by side.\nconcat = heads_out" + dialect.swap_first + ".reshape(n_q, heads * d_v)\n";
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
