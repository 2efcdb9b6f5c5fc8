// The NumPy and PyTorch scripts of sessions, run by Python and compared with what we compute.
#include "tests/core/code_run.h"

#include "core/session/python_text.h"

using namespace qkv;
using namespace qkv::test;

namespace {

using Script = std::string (*)(const Session&, const std::string&);

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// For a torch older than the function that the scripts ask: what its documentation says that it computes.
const std::string kOwnFunction = R"(import torch
import torch.nn.functional as F

def documented(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    n_q, n_k = query.shape[-2], key.shape[-2]
    added = torch.zeros(n_q, n_k, dtype=query.dtype)
    if is_causal:
        assert attn_mask is None
        added = added.masked_fill(torch.ones(n_q, n_k, dtype=torch.bool).tril().logical_not(), float("-inf"))
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        added = added.masked_fill(~attn_mask, float("-inf"))
    elif attn_mask is not None:
        assert attn_mask.dim() in (2, 4)
        added = added + attn_mask
    if enable_gqa:
        group = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(group, -3), value.repeat_interleave(group, -3)
    assert query.dim() == key.dim() == value.dim() == 4 and query.shape[-3] == key.shape[-3]
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    return torch.softmax(query @ key.transpose(-2, -1) * scale + added, -1) @ value

if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 5):
    F.scaled_dot_product_attention = documented
    torch.__version__ = "2.5.0"
)";

// Runs the scripts of all sessions; of every third one that loads its numbers from a file.
void check_scripts(Script script, const std::string& python, const std::string& prelude = {}) {
  const std::vector<NamedSession> sessions = all_sessions();
  const TempFolder folder;
  for (std::size_t n = 0; n < sessions.size(); ++n) {
    const std::string stem = std::to_string(n);
    const std::string data_file = n % 3 == 2 ? stem + ".data.npz" : "";
    write_text(folder / (stem + ".py"), script(sessions[n].session, data_file));
    if (data_file.empty()) continue;
    const Result<Bytes> data = npz_bytes(script_arrays(sessions[n].session.problem));
    REQUIRE(data.ok());
    REQUIRE(write_file_atomically(folder / data_file, data.value()).ok());
  }
  REQUIRE(run_scripts(python, folder, sessions.size(), prelude) == "");
  for (std::size_t n = 0; n < sessions.size(); ++n) {
    CAPTURE(n);
    CAPTURE(sessions[n].name);
    check_steps(folder / std::to_string(n), sessions[n].session.problem);
  }
}

}  // namespace

TEST_CASE("NumPy: the script of every session computes what we compute") {
  const std::string python = python_with("numpy");
  REQUIRE_MESSAGE(python != "", "install python3-numpy: it runs the scripts");
  check_scripts(numpy_script, python);
}

TEST_CASE("PyTorch: the script of every session computes what we compute") {
  const std::string python = python_with("torch, numpy");
  if (!python.empty()) {
    check_scripts(pytorch_script, python, kOwnFunction);
    return;
  }
  MESSAGE("no PyTorch here: the scripts are compiled, not run");
  const TempFolder folder;
  std::vector<std::string> words = {"python3", "-m", "py_compile"};
  for (const NamedSession& named : all_sessions()) {
    words.push_back(folder / (std::to_string(words.size()) + ".py"));
    write_text(words.back(), pytorch_script(named.session));
  }
  const Finished finished = run_process(words);
  CHECK_MESSAGE(finished.exit_code == 0, finished.err);
}

TEST_CASE("scripts: a session without options has none of their steps") {
  for (const Script script : {Script(numpy_script), Script(pytorch_script)}) {
    const std::string text = script(worked_example(), "");
    for (const std::string word : {"keep &=", "rotate", "tanh", "slopes", "sink", "bias", "repeat", "@ wo", "def split",
                                   "seterr", "causal", "inf", "nan", "see", "data["}) {
      CAPTURE(word);
      CHECK_FALSE(contains(text, word));
    }
    CHECK(contains(text, "[1, 0, 1],  # 貓"));
    CHECK(contains(text, "softmax(QKᵀ/√dₖ)·V"));
  }
}

TEST_CASE("scripts: each option brings its step, and the others stay away") {
  const auto text_with = [](const AttentionOptions& options) {
    Session session = worked_example();
    session.problem.options = options;
    return numpy_script(session);
  };
  CHECK(contains(text_with({.causal = true}), "keep &= j <= i"));
  CHECK(contains(text_with({.window = 2}), "abs(i - j) < 2"));
  CHECK(contains(text_with({.key_valid = {1, 0, 1}}), "np.array([1, 0, 1], dtype=bool)"));
  CHECK(contains(text_with({.softcap = 0.1F}), "0.10000000149011612 * np.tanh(scaled / 0.10000000149011612)"));
  CHECK(contains(text_with({.scale = 0.5F}), "scores * 0.5"));
  CHECK_FALSE(contains(text_with({.scale = 0.5F}), "d_k**0.5"));
  CHECK_FALSE(contains(text_with({.key_valid = {1, 0, 1}}), "arange"));
}

TEST_CASE("scripts: torch's own function is asked only where it means the same") {
  const auto own = [](const AttentionOptions& options) {
    Session session = worked_example();
    session.problem.options = options;
    const std::string text = pytorch_script(session);
    const std::size_t at = text.find("own = F.scaled_dot_product_attention(");
    return at == std::string::npos ? std::string() : text.substr(at, text.find('\n', at) - at);
  };
  const std::string start = "own = F.scaled_dot_product_attention(q[None], k[None], v[None]";
  CHECK(own({}) == start + ")[0]");
  CHECK(own({.causal = true}) == start + ", is_causal=True)[0]");
  CHECK(own({.causal = true, .window = 2}) == start + ", attn_mask=keep)[0]");
  CHECK(own({.scale = 0.5F, .window = 2}) == start + ", attn_mask=keep, scale=0.5)[0]");
  CHECK(contains(own({.alibi = true}), "attn_mask=added[None]"));
  CHECK(own({.softcap = 2.0F}).empty());
  CHECK(own({.sink = {1}}).empty());
  CHECK(own({.key_valid = {0, 0, 0}}).empty());
  // Nq ≠ Nk: is_causal means top_left.
  for (const CausalAlign align : {CausalAlign::kTopLeft, CausalAlign::kBottomRight}) {
    Problem problem = random_problem(1, 1, 3, 5, 2, 2);
    problem.options = {.causal = true, .align = align};
    CHECK(contains(pytorch_script(session_of(problem)), "is_causal=True") == (align == CausalAlign::kTopLeft));
  }
}

TEST_CASE("scripts: text of a person stays in its comment") {
  const std::string text = numpy_script(strange_session());
  CHECK(text.starts_with("# -*- coding: utf-8 -*-\n# Attention"));
  CHECK(contains(text, "# a\\nraise SystemExit(9)\n"));
  CHECK(contains(text, "\\u202eright to left\\u202c"));
  CHECK(contains(text, "\\u2028next"));
  CHECK_FALSE(contains(text, "\u202e"));
  CHECK_FALSE(contains(text, "\u2028"));
  CHECK(python_string("a\"\\\n\u202e\x01貓") == "\"a\\\"\\\\\\n\\u202e\\x01貓\"");
  CHECK(comment_text("貓貓貓", 2) == "貓貓…");
}

TEST_CASE("scripts: what has too many numbers is told by their count, and a streamed session is refused") {
  CHECK(numbers_in_script(worked_example().problem) == 27);
  Problem problem = random_problem(2, 1, 3, 4, 2, 5);
  problem.options.key_valid = {1, 1, 1, 0};
  problem.options.sink = {0, 0};
  CHECK(numbers_in_script(problem) == 2 * 6 + 8 + 20 + 4 + 2);
  CHECK(check_script({.nq = 1000, .nk = 1000, .heads = 8, .kv_heads = 8, .d_k = 64, .d_v = 64}).ok());
  const Status given = check_script({.nq = 3, .nk = 3, .heads = 1, .kv_heads = 1});
  REQUIRE_FALSE(given.ok());
  CHECK(given.error().message.find("given") != std::string::npos);
  const Status large = check_script({.nq = 131072, .nk = 131072, .heads = 1, .kv_heads = 1, .d_k = 64, .d_v = 64});
  REQUIRE_FALSE(large.ok());
  CHECK(contains(large.error().message, "131072×131072 cells, in float64 384.0 GiB"));
}
