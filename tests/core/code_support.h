// Sessions of every kind, and Python to run their scripts with.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/session/code.h"
#include "core/session/session_file.h"
#include "core/session/session_tensors.h"
#include "tests/cli/process.h"
#include "tests/core/attention_support.h"
#include "tests/core/reference_cases.h"

namespace qkv::test {

struct NamedSession {
  std::string name;
  Session session;
};

inline Session session_of(Problem problem) {
  Session session;
  session.title = "A test";
  session.problem = std::move(problem);
  REQUIRE(name_tokens_by_position(session).ok());
  const Result<Shapes> shapes = check_session(session);
  REQUIRE_MESSAGE(shapes.ok(), shapes.error().message);
  return session;
}

// Every case of the reference tensors, the layer of four heads and the examples.
inline std::vector<NamedSession> known_sessions() {
  std::vector<NamedSession> sessions;
  for (const Case& c : kCases) sessions.push_back({c.name, session_of(problem_of(c))});
  Result<Session> layer = open_any(kData + "/multi_head_layer.npz");
  REQUIRE(layer.ok());
  layer.value().problem.options.causal = true;
  sessions.push_back({"multi_head_layer", std::move(layer).value()});
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(QKV_SOURCE_DIR "/assets/sessions")) {
    files.push_back(entry.path());
  }
  REQUIRE(files.size() >= 7);
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    Result<Session> session = read_session(file);
    REQUIRE(session.ok());
    sessions.push_back({file.stem().string(), std::move(session).value()});
  }
  return sessions;
}

inline Problem random_projected(int heads, int kv_heads, Index n, Index d_k, Index d_v, unsigned seed, bool biases) {
  constexpr Index kModel = 5;
  ProjectedSource source;
  source.x = random_matrix(n, kModel, seed);
  source.wq = random_matrix(kModel, heads * d_k, seed + 1);
  source.wk = random_matrix(kModel, kv_heads * d_k, seed + 2);
  source.wv = random_matrix(kModel, kv_heads * d_v, seed + 3);
  if (biases) {
    source.bq = random_matrix(1, heads * d_k, seed + 4);
    source.bk = random_matrix(1, kv_heads * d_k, seed + 5);
    source.bv = random_matrix(1, kv_heads * d_v, seed + 6);
  }
  source.heads = heads;
  source.kv_heads = kv_heads;
  return {.source = std::move(source)};
}

// Each option on or off by the bits of `bits`, values by `seed`.
inline AttentionOptions options_by_bits(unsigned bits, const Shapes& s, unsigned seed) {
  std::mt19937 random(seed);
  const auto number = [&](float low, float high) { return std::uniform_real_distribution<float>(low, high)(random); };
  AttentionOptions options;
  if (bits & 1) options.rope = Rope{number(2, 20000), bits & 2 ? RopeStyle::kInterleaved : RopeStyle::kHalf};
  if (bits & 4) options.scale = number(-1, 1);
  if (bits & 8) options.softcap = number(0.1F, 4);
  if (bits & 16) options.alibi = true;
  if (bits & 32) options.bias = random_matrix(s.nq, s.nk, seed);
  if (bits & 64) options.causal = true;
  if (bits & 128) options.align = CausalAlign::kTopLeft;
  if (bits & 256) options.window = 1 + static_cast<Index>(random() % 4);
  if (bits & 512) {
    for (Index key = 0; key < s.nk; ++key) options.key_valid.push_back(random() % 3 != 0);
  }
  if (bits & 1024) {
    for (int head = 0; head < s.heads; ++head) options.sink.push_back(number(-2, 4));
  }
  return options;
}

// Random combinations of all options, sources, heads and shapes; every option alone and every pair is among them.
inline std::vector<NamedSession> random_sessions() {
  std::vector<unsigned> choices;
  for (int a = 0; a < 11; ++a) {
    for (int b = a; b < 11; ++b) choices.push_back(1U << a | 1U << b);
  }
  std::mt19937 random(7);
  for (int n = 0; n < 60; ++n) choices.push_back(static_cast<unsigned>(random() % 2048));
  constexpr std::pair<int, int> kHeads[] = {{1, 1}, {2, 2}, {4, 2}, {3, 1}, {6, 3}};
  std::vector<NamedSession> sessions;
  for (std::size_t n = 0; n < choices.size(); ++n) {
    const auto seed = static_cast<unsigned>(n);
    const auto [heads, kv_heads] = kHeads[random() % 5];
    const Index nq = 1 + static_cast<Index>(random() % 7), nk = 1 + static_cast<Index>(random() % 7);
    const Index d_k = 2 * (1 + static_cast<Index>(random() % 3)), d_v = 1 + static_cast<Index>(random() % 4);
    Problem problem = random() % 3 == 0 ? random_projected(heads, kv_heads, nq, d_k, d_v, seed, random() % 2 == 0)
                                        : random_problem(heads, kv_heads, nq, nk, d_k, d_v, seed);
    if (random() % 2 == 0) {
      problem.wo = random_matrix(heads * d_v, 3, seed);
      if (random() % 2 == 0) problem.bo = random_matrix(1, 3, seed + 1);
    }
    problem.options = options_by_bits(choices[n], check_shapes(problem).value(), seed);
    sessions.push_back(
        {"random " + std::to_string(n) + ", options " + std::to_string(choices[n]), session_of(std::move(problem))});
  }
  return sessions;
}

// NaN and infinities in hidden and in visible places, rows that see no key, with and without a sink.
inline std::vector<NamedSession> hard_sessions() {
  std::vector<NamedSession> sessions;
  for (const bool with_sink : {false, true}) {
    for (const bool with_rope : {false, true}) {
      Problem problem = random_problem(2, 1, 4, 4, 2, 3, 5);
      auto& source = std::get<DirectSource>(problem.source);
      source.v[0].edit().row(3).setConstant(kNan);  // seen by the last query alone
      source.v[0].edit()(1, 1) = kInf;
      source.q[0].edit()(0, 0) = kNan;  // the first position, which a rope leaves alone
      source.q[1].edit()(2, 1) = -kInf;
      source.k[0].edit()(0, 1) = -0.0F;
      problem.options.key_valid = {0, 1, 1, 1};
      problem.options.causal = true;
      Matrix bias = Matrix::Zero(4, 4);
      bias(1, 1) = -kInf;  // the one key that the second query sees
      bias(3, 2) = -kInf;
      problem.options.bias = bias;
      if (with_rope) problem.options.rope = Rope{};
      if (with_sink) problem.options.sink = {0.5F, -3};
      sessions.push_back({"hard", session_of(problem)});
      problem.options.key_valid = {0, 0, 0, 0};
      sessions.push_back({"hard, all dead", session_of(problem)});
      problem.options = {.sink = problem.options.sink};
      sessions.push_back({"hard, no mask", session_of(problem)});
    }
  }
  return sessions;
}

// Tokens and a title that would break out of a comment, a literal or LaTeX, were they not escaped.
inline Session strange_session() {
  const std::vector<std::string> tokens = {"\"\"\"",
                                           "'''",
                                           "\\",
                                           "\\\"",
                                           "a\nraise SystemExit(9)",
                                           "\r\nimport os",
                                           "貓",
                                           "\U0001F600",
                                           "\U0001F468\u200D\U0001F469\u200D\U0001F467",
                                           "\u202eright to left\u202c",
                                           "\u2028next",
                                           "{}%d$x_1^2&#~",
                                           "\\end{document}",
                                           "",
                                           "   ",
                                           std::string("\0x", 2),
                                           "--`?`<<>>|",
                                           "عربي",
                                           "\xff\xfe",
                                           "é▁Ġ##"};
  const auto n = static_cast<Index>(tokens.size());
  Session session = session_of(random_problem(1, 1, n, n, 2, 2, 3));
  session.title = "coding: latin-1 \"\"\" \\ %\n1/0\n貓 {";
  session.tokens = tokens;
  return session;
}

inline std::vector<NamedSession> all_sessions() {
  std::vector<NamedSession> sessions = known_sessions();
  for (auto& more : {random_sessions(), hard_sessions()}) sessions.insert(sessions.end(), more.begin(), more.end());
  sessions.push_back({"strange", strange_session()});
  return sessions;
}

// A Python that has `module`, or "".
inline std::string python_with(const std::string& module) {
  for (const std::string python : {"/usr/bin/python3", "python3"}) {
    if (run_process({python, "-c", "import " + module}).exit_code == 0) return python;
  }
  return "";
}

}  // namespace qkv::test
