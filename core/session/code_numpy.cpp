// The NumPy script of a session.
#include "core/session/code.h"
#include "core/session/python_text.h"

namespace qkv {
namespace {

PythonDialect dialect() {
  return {.library = "NumPy",
          .imports = "import numpy as np\n",
          .make_numbers = "np.array({}, dtype=np.float32).astype(np.float64)",
          .make_flags = "np.array({}, dtype=bool)",
          .load_numbers = "data[{}].astype(np.float64)",
          .load_flags = "data[{}].astype(bool)",
          .heads_first = ".transpose(1, 0, 2)"};
}

std::string rope_lines(const Rope& rope) {
  const bool half = rope.style == RopeStyle::kHalf;
  return "\n# Rotary position embedding: pairs of columns turn by position * base**(-2 * pair / d_k).\n"
         "def rotate(rows):  # [heads, tokens, d_k]\n"
         "    turned = rows.copy()\n"
         "    position = np.arange(1, rows.shape[1])  # the first token stands at 0 and stays as it is\n"
         "    for pair in range(d_k // 2):\n" +
         std::string(half ? "        a, b = pair, pair + d_k // 2\n" : "        a, b = 2 * pair, 2 * pair + 1\n") +
         "        angle = position * " + python_scalar(rope.base) +
         " ** (-2 * pair / d_k)\n"
         "        x, y = rows[:, 1:, a], rows[:, 1:, b]\n"
         "        turned[:, 1:, a] = x * np.cos(angle) - y * np.sin(angle)\n"
         "        turned[:, 1:, b] = y * np.cos(angle) + x * np.sin(angle)\n"
         "    return turned\n\n\n";
}

// From q and k to the raw scores.
std::string score_lines(const AttentionOptions& options, const ScriptNeeds& needs) {
  std::string text, q = "q", k = "k";
  if (options.rope) {
    text += rope_lines(*options.rope);
    text += "q_turned, k_turned = rotate(q), rotate(k)\n\n";
    q = "q_turned", k = "k_turned";
  }
  if (needs.groups) {
    text +=
        "# Query heads share key/value heads: each of those is used heads / kv_heads times in a row.\n"
        "k_shared = np.repeat(" +
        k +
        ", heads // kv_heads, axis=0)\n"
        "v_shared = np.repeat(v, heads // kv_heads, axis=0)\n\n";
    k = "k_shared";
  }
  return text + "# Scores: each query times each key. [heads, n_q, n_k]\nscores = " + q + " @ " + k +
         ".transpose(0, 2, 1)\n\n";
}

// From the scores to what softmax sees.
std::string scaled_lines(const AttentionOptions& options, const Shapes& shapes) {
  std::string text = scale_lines(options);
  if (options.softcap) {
    const std::string cap = python_scalar(*options.softcap);
    text += "# Softcap: no score leaves -cap … cap.\nscaled = " + cap + " * np.tanh(scaled / " + cap + ")\n";
  }
  if (options.alibi) {
    text += slope_lines(shapes.heads, "np", "np.concatenate");
    text += "scaled = scaled - slopes[:, None, None] * abs(i - j)\n";
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
  text += needs.dead_rows ? "# Hidden keys have weight 0, and so has all that a query sees that sees no key.\n"
                          : "# Hidden keys have weight 0.\n";
  return text + "attn = np.where(keep, exponentials / total, 0)\n";
}

std::string heads_out_lines(const ScriptNeeds& needs) {
  const std::string v = needs.groups ? "v_shared" : "v";
  if (!needs.mask) return "\n# Each query's mix of the values. [heads, n_q, d_v]\nheads_out = attn @ " + v + "\n";
  return "\n# Each query's mix of the values that it sees; hidden ones are not touched. [heads, n_q, d_v]\n"
         "heads_out = np.zeros((heads, n_q, d_v))\n"
         "for row in range(n_q):\n"
         "    see = keep[row]\n"
         "    heads_out[:, row] = np.einsum(\"hk,hkd->hd\", attn[:, row, see], " +
         v + "[:, see])\n";
}

}  // namespace

std::string numpy_script(const Session& session, const std::string& data_file) {
  const Problem& problem = session.problem;
  const AttentionOptions& options = problem.options;
  const Shapes shapes = check_session(session).value();
  const ScriptNeeds needs = script_needs(problem, shapes);
  std::string text = script_start(session, shapes, dialect(), data_file);
  if (needs.not_finite || (needs.dead_rows && options.sink.empty())) {
    text += std::string("# ") +
            (needs.not_finite ? "NaN and infinities are meant" : "A row without keys gives 0 / 0 on the way") +
            ": no warnings.\nnp.seterr(invalid=\"ignore\")\n\n";
  }
  if (needs.positions) text += position_lines(options, shapes, "np");
  text += score_lines(options, needs) + scaled_lines(options, shapes) + softmax_lines(options, needs) +
          heads_out_lines(needs) + output_lines(problem, ".transpose(1, 0, 2)");
  text += "\nnp.set_printoptions(precision=4, suppress=True)\n" + print_lines(problem);
  const std::string keep = needs.mask ? "keep.astype(np.uint8)" : "np.ones((n_q, n_k), dtype=np.uint8)";
  return text + "if len(sys.argv) > 1:\n    np.savez(sys.argv[1], " + save_arguments(problem, "", keep) + ")\n";
}

}  // namespace qkv
