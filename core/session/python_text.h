// What the NumPy and the PyTorch script of a session share: literals of Python, the numbers, and the masks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/session/session.h"

namespace qkv {

// A matrix that a script starts from, with all its heads: inputs of the source, wo, bo, bias.
struct ScriptInput {
  MatrixKind kind = MatrixKind::kQ;
  std::vector<SharedMatrix> matrices;  // one where the kind does not exist per head
};
std::vector<ScriptInput> script_inputs(const Problem& problem);

// What a session asks of its script beside the steps that its options name.
struct ScriptNeeds {
  bool mask = false;        // an option may hide keys
  bool positions = false;   // of queries and keys: causal, window, ALiBi
  bool not_finite = false;  // an input holds NaN or an infinity
  bool dead_rows = false;   // a query sees no key
  bool groups = false;      // fewer key/value heads than heads
};
ScriptNeeds script_needs(const Problem& problem, const Shapes& shapes);

// A literal in double quotes that Python reads back to the same text; invalid UTF-8 becomes U+FFFD.
std::string python_string(std::string_view text);

// A float32 as the float64 that it is: "0.5", "0.10000000149011612".
std::string python_scalar(float value);

// `text` for what is left of a comment's line: at most `most` characters, and none that ends the line or that hides or
// reorders what stands there.
std::string comment_text(std::string_view text, std::size_t most = 60);

// What the scripts' words differ in. `{}` stands for what is put in.
struct PythonDialect {
  std::string library;       // "NumPy"
  std::string imports;       // lines
  std::string make_numbers;  // rows of numbers, as float64: "np.array({}, …)"
  std::string make_flags;    // a list of 0 and 1, as booleans
  std::string load_numbers;  // an array of the file, its name in quotes, as float64
  std::string load_flags;    // the same as booleans
  std::string heads_first;   // [tokens, heads, d] to [heads, tokens, d]: ".transpose(1, 0, 2)"
};

// From the first line to q, k, v, each [heads, tokens, d], the other inputs, and the names heads, n_q, d_k, kv_heads,
// n_k, d_v. `data_file`: where the numbers are, by its name beside the script; empty: they are written out.
std::string script_start(const Session& session, const Shapes& shapes, const PythonDialect& dialect,
                         const std::string& data_file);

// "i" and "j", the positions [n_q, 1] and [1, n_k]; `library` is the module's name in the script.
std::string position_lines(const AttentionOptions& options, const Shapes& shapes, const std::string& library);
// "keep &= …" for each option that hides keys; keep [n_q, n_k] is there.
std::string mask_lines(const AttentionOptions& options);
// "scaled = …" with its comment.
std::string scale_lines(const AttentionOptions& options);
// "slopes = …", [heads]; `join` is the function that puts two arrays one behind the other.
std::string slope_lines(int heads, const std::string& library, const std::string& join);
// "concat = …" and out = …" where there is a W^O.
std::string output_lines(const Problem& problem, const std::string& heads_first);
// The end: prints attn and out. `set_options` is a line, may be empty.
std::string print_lines(const Problem& problem);
// "q=q, k=k, …": the arguments of np.savez(), each value with `suffix`, keep as `keep`.
std::string save_arguments(const Problem& problem, const std::string& suffix, const std::string& keep);

// `text` with each `{}` replaced.
std::string filled_in(std::string_view text, std::string_view value);

}  // namespace qkv
