// The NumPy script of a session.
#include "core/session/code.h"
#include "core/session/python_script.h"

namespace qkv {
namespace {

PythonDialect dialect() {
  return {.title = "NumPy",
          .module = "np",
          .imports = "import numpy as np\n",
          .make_numbers = "np.array({}, dtype=np.float32).astype(np.float64)",
          .make_flags = "np.array({}, dtype=bool)",
          .load_numbers = "data[{}].astype(np.float64)",
          .load_flags = "data[{}].astype(bool)",
          .copy = ".copy()",
          .join = "np.concatenate",
          .repeat_heads = "np.repeat({}, heads // kv_heads, axis=0)",
          .swap_first = ".transpose(1, 0, 2)",
          .swap_last = ".transpose(0, 2, 1)",
          .zeros = "np.zeros(({}))"};
}

// What is added to the scaled scores.
std::string added_lines(const AttentionOptions& options, const Shapes& shapes, const PythonDialect& dialect) {
  std::string text;
  if (options.alibi) {
    text += slope_lines(shapes.heads, dialect) + "scaled = scaled - slopes[:, None, None] * abs(i - j)\n";
  }
  if (options.bias) text += "scaled = scaled + bias\n";
  return text;
}

std::string softmax_lines(const AttentionOptions& options, const ScriptNeeds& needs) {
  std::string text = "\n";
  if (needs.mask) {
    text += "# Mask: which keys a query sees. [n_q, n_k]\nkeep = np.ones((n_q, n_k), dtype=bool)\n" +
            mask_lines(options) + "visible = np.where(keep, scaled, -np.inf)\n\n";
  }
  text += "# Softmax over the keys; less the largest score first, so that exp() stays in range.\n";
  text += std::string("largest = ") + (needs.mask ? "visible" : "scaled") + ".max(axis=-1, keepdims=True)\n";
  if (!options.sink.empty()) text += "largest = np.maximum(largest, sink[:, None, None])\n";
  if (needs.mask) {
    text += "exponentials = np.where(keep, np.exp(visible - largest), 0)\n";
  } else {
    text += "exponentials = np.exp(scaled - largest)\n";
  }
  text += "total = exponentials.sum(axis=-1, keepdims=True)\n";
  if (!options.sink.empty()) {
    text += "total = total + np.exp(sink[:, None, None] - largest)  # the sink takes its share and gives no value\n";
  }
  if (!needs.mask) return text + "attn = exponentials / total\n";
  return text + hidden_comment(needs) + "attn = np.where(keep, exponentials / total, 0)\n";
}

}  // namespace

std::string numpy_script(const Session& session, const std::string& data_file) {
  const Problem& problem = session.problem;
  const AttentionOptions& options = problem.options;
  const Shapes shapes = check_session(session).value();
  const ScriptNeeds needs = script_needs(problem, shapes);
  const PythonDialect numpy = dialect();
  std::string text = script_start(session, shapes, numpy, data_file);
  if (needs.not_finite || (needs.dead_rows && options.sink.empty())) {
    text += std::string("# ") +
            (needs.not_finite ? "NaN and infinities are meant" : "A row without keys gives 0 / 0 on the way") +
            ": no warnings.\nnp.seterr(invalid=\"ignore\")\n\n";
  }
  if (needs.positions) text += position_lines(options, shapes, numpy);
  text += score_lines(options, needs, numpy) + scale_lines(options, numpy) + added_lines(options, shapes, numpy) +
          softmax_lines(options, needs) + heads_out_lines(needs, numpy) + output_lines(problem, numpy);
  text += "\nnp.set_printoptions(precision=4, suppress=True)\n" + print_lines(problem);
  const std::string keep = needs.mask ? "keep.astype(np.uint8)" : "np.ones((n_q, n_k), dtype=np.uint8)";
  return text + "if len(sys.argv) > 1:\n    np.savez(sys.argv[1], " + save_arguments(problem, "", keep) + ")\n";
}

}  // namespace qkv
