// What the NumPy and the PyTorch script of a session share: the numbers, and every step that both write alike.
#pragma once

#include <string>

#include "core/session/session.h"

namespace qkv {

// What a session asks of its script beside the steps that its options name.
struct ScriptNeeds {
  bool mask = false;        // an option may hide keys
  bool positions = false;   // of queries and keys: causal, window, ALiBi
  bool not_finite = false;  // an input holds NaN or an infinity
  bool dead_rows = false;   // a query sees no key
  bool groups = false;      // fewer key/value heads than heads
};
ScriptNeeds script_needs(const Problem& problem, const Shapes& shapes);

// What the scripts' words differ in. `{}` stands for what is put in.
struct PythonDialect {
  std::string title;         // "NumPy"
  std::string module;        // its name in the script: "np"
  std::string imports;       // lines
  std::string make_numbers;  // rows of numbers, as float64: "np.array({}, …)"
  std::string make_flags;    // a list of 0 and 1, as booleans
  std::string load_numbers;  // an array of the file, its name in quotes, as float64
  std::string load_flags;    // the same as booleans
  std::string copy;          // "rows" to a copy of them: ".copy()"
  std::string join;          // the function that puts two arrays one behind the other
  std::string repeat_heads;  // each head `heads // kv_heads` times in a row
  std::string swap_first;    // the first two of three axes, as in [tokens, heads, d] to [heads, tokens, d]
  std::string swap_last;     // the last two of three axes
  std::string zeros;         // a function that is given the sizes {}
};

// From the first line to q, k, v, each [heads, tokens, d], the other inputs, and the names heads, n_q, d_k, kv_heads,
// n_k, d_v. `data_file`: where the numbers are, by its name beside the script; empty: they are written out.
std::string script_start(const Session& session, const Shapes& shapes, const PythonDialect& dialect,
                         const std::string& data_file);

// "i" and "j", the positions [n_q, 1] and [1, n_k].
std::string position_lines(const AttentionOptions& options, const Shapes& shapes, const PythonDialect& dialect);
// From q and k to the raw scores.
std::string score_lines(const AttentionOptions& options, const ScriptNeeds& needs, const PythonDialect& dialect);
// "scaled = …" with its comment, and the cap where there is one.
std::string scale_lines(const AttentionOptions& options, const PythonDialect& dialect);
// "slopes = …", [heads].
std::string slope_lines(int heads, const PythonDialect& dialect);
// "keep &= …" for each option that hides keys; keep [n_q, n_k] is there.
std::string mask_lines(const AttentionOptions& options);
// The comment on the line that makes hidden weights 0.
std::string hidden_comment(const ScriptNeeds& needs);
// From attn and v to heads_out.
std::string heads_out_lines(const ScriptNeeds& needs, const PythonDialect& dialect);
// "concat = …", and "out = …" where there is a W^O.
std::string output_lines(const Problem& problem, const PythonDialect& dialect);
// Prints attn and out.
std::string print_lines(const Problem& problem);
// "q=q, k=k, …": the arguments of np.savez(), each value with `suffix`, keep as `keep`.
std::string save_arguments(const Problem& problem, const std::string& suffix, const std::string& keep);

}  // namespace qkv
