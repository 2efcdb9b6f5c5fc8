// The PyTorch script of a session.
#include "core/session/code.h"
#include "core/session/python_script.h"
#include "core/session/python_text.h"

namespace qkv {
namespace {

PythonDialect dialect(bool loaded, bool checked) {
  return {.title = "PyTorch",
          .module = "torch",
          .imports = std::string(loaded ? "import numpy as np\n" : "") + "import torch\n" +
                     (checked ? "import torch.nn.functional as F\n" : "") +
                     "\ntorch.set_default_dtype(torch.float64)\n",
          .make_numbers = "torch.tensor({}, dtype=torch.float32).double()",
          .make_flags = "torch.tensor({}, dtype=torch.bool)",
          .load_numbers = "torch.from_numpy(data[{}]).double()",
          .load_flags = "torch.from_numpy(data[{}]).bool()",
          .copy = ".clone()",
          .join = "torch.cat",
          .repeat_heads = "{}.repeat_interleave(heads // kv_heads, dim=0)",
          .swap_first = ".permute(1, 0, 2)",
          .swap_last = ".transpose(1, 2)",
          .zeros = "torch.zeros({})"};
}

// What is added to the scaled scores is held as `added`, since torch's own function takes it so.
std::string added_lines(const AttentionOptions& options, const Shapes& shapes, const PythonDialect& dialect) {
  if (!options.alibi) return options.bias ? "added = bias\nscaled = scaled + added\n" : "";
  return slope_lines(shapes.heads, dialect) + "added = -slopes[:, None, None] * abs(i - j)" +
         (options.bias ? " + bias" : "") + "\nscaled = scaled + added\n";
}

std::string softmax_lines(const AttentionOptions& options, const ScriptNeeds& needs) {
  std::string text = "\n", visible = "scaled";
  if (needs.mask) {
    text += "# Mask: which keys a query sees. [n_q, n_k]\nkeep = torch.ones(n_q, n_k, dtype=torch.bool)\n" +
            mask_lines(options) + "visible = scaled.masked_fill(~keep, float(\"-inf\"))\n";
    visible = "visible";
  }
  text += "\n# Softmax over the keys. [heads, n_q, n_k]\n";
  if (options.sink.empty()) {
    text += "attn = torch.softmax(" + visible + ", dim=-1)\n";
  } else {
    text +=
        "# The sink is one more key, which takes its share of the weight and gives no value.\n"
        "with_sink = torch.cat([" +
        visible +
        ", sink[:, None, None].expand(heads, n_q, 1)], dim=-1)\n"
        "attn = torch.softmax(with_sink, dim=-1)[..., :-1]\n";
  }
  if (!needs.mask) return text;
  return text + hidden_comment(needs) + "attn = attn.masked_fill(~keep, 0)\n";
}

// torch's own function knows neither cap nor sink, and says nothing dependable of NaN or of a query without keys.
bool has_own_function(const AttentionOptions& options, const ScriptNeeds& needs) {
  return !options.softcap && options.sink.empty() && !needs.not_finite && !needs.dead_rows;
}

std::string check_lines(const AttentionOptions& options, const Shapes& shapes, const ScriptNeeds& needs) {
  const bool adds = options.alibi || options.bias;
  // is_causal aligns the first query with the first key, and goes with no other mask.
  const bool is_causal = options.causal && !options.window && options.key_valid.empty() && !adds &&
                         (shapes.nq == shapes.nk || options.align == CausalAlign::kTopLeft);
  std::string arguments, version = "2, 0";
  if (is_causal) {
    arguments = ", is_causal=True";
  } else if (adds) {
    arguments = needs.mask ? ", attn_mask=added.masked_fill(~keep, float(\"-inf\"))" : ", attn_mask=added";
    if (options.alibi) arguments += "[None]";  // [1, heads, n_q, n_k]
  } else if (needs.mask) {
    arguments = ", attn_mask=keep";
  }
  if (options.scale) arguments += ", scale=" + python_scalar(*options.scale), version = "2, 1";
  if (needs.groups) arguments += ", enable_gqa=True", version = "2, 5";
  const std::string q = options.rope ? "q_turned" : "q", k = options.rope ? "k_turned" : "k";
  return "\n# The same from torch's own function, where this version has what it takes.\n"
         "if tuple(int(part) for part in torch.__version__.split(\".\")[:2]) >= (" +
         version +
         "):\n"
         "    own = F.scaled_dot_product_attention(" +
         q + "[None], " + k + "[None], v[None]" + arguments +
         ")[0]\n"
         "    torch.testing.assert_close(own, heads_out)\n"
         "    print(\"F.scaled_dot_product_attention agrees\")\n";
}

}  // namespace

std::string pytorch_script(const Session& session, const std::string& data_file) {
  const Problem& problem = session.problem;
  const AttentionOptions& options = problem.options;
  const Shapes shapes = check_session(session).value();
  const ScriptNeeds needs = script_needs(problem, shapes);
  const bool checked = has_own_function(options, needs);
  const PythonDialect torch = dialect(!data_file.empty(), checked);
  std::string text = script_start(session, shapes, torch, data_file);
  if (needs.positions) text += position_lines(options, shapes, torch);
  text += score_lines(options, needs, torch) + scale_lines(options, torch) + added_lines(options, shapes, torch) +
          softmax_lines(options, needs) + heads_out_lines(needs, torch) + output_lines(problem, torch);
  if (checked) text += check_lines(options, shapes, needs);
  text += "\ntorch.set_printoptions(precision=4, sci_mode=False)\n" + print_lines(problem);
  const std::string keep = needs.mask ? "keep.byte().numpy()" : "np.ones((n_q, n_k), dtype=np.uint8)";
  text += "if len(sys.argv) > 1:\n";
  if (data_file.empty()) text += "    import numpy as np\n\n";
  return text + "    np.savez(sys.argv[1], " + save_arguments(problem, ".numpy()", keep) + ")\n";
}

}  // namespace qkv
