// The LaTeX document of sessions: escaping and structure always, compiled where TeX is.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/base/utf8.h"
#include "core/session/latex_text.h"
#include "tests/core/code_support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string document_of(const Session& session) {
  const Result<Trace> trace = forward(session.problem);
  REQUIRE(trace.ok());
  return latex_document(session, trace.value());
}

// Why the braces, the environments or the mathematics of a document do not fit together; empty if they do.
std::string structure_problem(const std::string& text) {
  std::vector<std::string> open;
  int braces = 0;
  bool in_display = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string rest = text.substr(at, 40);
    if (text[at] == '%') {
      at = std::min(text.find('\n', at), text.size());
    } else if (rest.starts_with("\\begin{") || rest.starts_with("\\end{")) {
      const bool begins = rest[1] == 'b';
      const std::size_t first = at + (begins ? 7 : 5);
      const std::string name = text.substr(first, text.find('}', first) - first);
      if (begins) {
        open.push_back(name);
      } else if (open.empty() || open.back() != name) {
        return "\\end{" + name + "} of nothing";
      } else {
        open.pop_back();
      }
      at += begins ? 5 : 3;
    } else if (rest.starts_with("\\[") || rest.starts_with("\\]")) {
      if ((text[at + 1] == '[') == in_display) return "\\[ and \\] are not in turn";
      in_display = !in_display;
      ++at;
    } else if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '{' || text[at] == '}') {
      braces += text[at] == '{' ? 1 : -1;
      if (braces < 0) return "} too many";
    }
  }
  if (braces != 0) return "{ too many";
  if (in_display) return "\\[ is not closed";
  return open.empty() ? "" : open.back() + " is not closed";
}

bool can_run(const std::string& program) { return run_process({program, "--version"}).exit_code == 0; }

// Compiles a document; what went wrong.
std::string compile(const std::string& program, const std::string& document) {
  const TempFolder folder;
  write_text(folder / "doc.tex", document);
  const std::string options = "-output-directory=" + folder.path().string();
  Process process({program, "-interaction=nonstopmode", "-halt-on-error", options, folder / "doc.tex"});
  const Finished finished = process.wait(240);
  if (finished.exit_code != 0)
    return finished.out.substr(finished.out.size() - std::min<std::size_t>(finished.out.size(), 1500));
  return std::filesystem::exists(folder / "doc.pdf") ? "" : "no PDF";
}

}  // namespace

TEST_CASE("LaTeX: braces, environments and displays of every session's document fit together") {
  CHECK(structure_problem("\\begin{a}{\\[\\]}\\end{a}").empty());
  CHECK_FALSE(structure_problem("\\begin{a}\\end{b}").empty());
  CHECK_FALSE(structure_problem("{\\[}").empty());
  for (const NamedSession& named : all_sessions()) {
    CAPTURE(named.name);
    const std::string text = document_of(named.session);
    CHECK(structure_problem(text) == "");
    CHECK(is_valid_utf8(text));
  }
}

TEST_CASE("LaTeX: characters that are commands are spelled") {
  CHECK(latex_text("a\\b") == "a\\ascii{92}b");
  CHECK(latex_text("{}%$_^&#~") ==
        "\\ascii{123}\\ascii{125}\\ascii{37}\\ascii{36}\\ascii{95}\\ascii{94}\\ascii{38}\\ascii{35}\\ascii{126}");
  CHECK(latex_text("\\end{document}") == "\\ascii{92}end\\ascii{123}document\\ascii{125}");
  CHECK(latex_text("--") == "{-}{-}");
  CHECK(latex_text("a b\n", 9, true) == "a\\textvisiblespace{}b\\ascii{92}n");
  CHECK(latex_text("貓a") == "\\cjk{貓}a");
  CHECK(latex_text("\U0001F600") == "\\emoji{\U0001F600}{U+1F600}");
  CHECK(latex_text("\u202ex") == "x");
  CHECK(latex_text("abcdef", 3) == "abc\\dots{}");
  CHECK(latex_text(std::string("\x01", 1)) == "\\ascii{91}U+0001\\ascii{93}");
  for (unsigned char c = 1; c < 128; ++c) {  // nothing of what is typed stays a command
    CAPTURE(static_cast<int>(c));
    const std::string text = latex_text(std::string(1, static_cast<char>(c)), 9, true);
    CHECK(text.find_first_of("$&#^_~%") == std::string::npos);
    CHECK(structure_problem(text) == "");
  }
}

TEST_CASE("LaTeX: numbers, dots and formula") {
  CHECK(latex_number(0.43192, 3) == "0.432");
  CHECK(latex_number(-INFINITY, 3) == "-\\infty");
  CHECK(latex_number(NAN, 3) == "\\mathrm{NaN}");
  CHECK(latex_number(0.004, 2) == "0.00");
  CHECK(latex_exact(0.0625F) == "0.0625");
  CHECK(latex_exact(1e-30F) == "1\\cdot 10^{-30}");
  CHECK(latex_number(1.23e8, 2) == "1.23\\cdot 10^{8}");
  CHECK(shown_indices(3) == std::vector<Index>{0, 1, 2});
  CHECK(shown_indices(100) == std::vector<Index>{0, 1, 2, 3, 4, 5, -1, 98, 99});

  const std::string text = document_of(worked_example());
  CHECK(contains(text, "O = \\operatorname{softmax}(QK^{\\top}/\\sqrt{d_k})\\cdot V"));
  CHECK(contains(text, "\\token{\\cjk{貓}} & 1 & 3 & 3"));
  CHECK(contains(text, "\\token{\\cjk{追}} & 0.613 & 0.193 & 0.193"));
  CHECK_FALSE(contains(text, "masked"));

  Session causal = worked_example();
  causal.problem.options.causal = true;
  const std::string masked = document_of(causal);
  CHECK(contains(masked, "\\token{\\cjk{貓}} & 0.577 & -\\infty & -\\infty"));
  CHECK(contains(masked, "\\token{\\cjk{貓}} & 1.000 & 0 & 0"));
}

TEST_CASE("LaTeX: documents compile") {
  Session everything = session_of(random_projected(2, 1, 4, 4, 3, 9, true));
  everything.problem.wo = test::random_matrix(6, 3, 1);
  everything.problem.bo = test::random_matrix(1, 3, 2);
  everything.problem.options = options_by_bits(2047, check_shapes(everything.problem).value(), 4);
  Session large = session_of(random_problem(10, 2, 30, 40, 16, 12));
  Session ascii = strange_session();
  std::erase_if(ascii.title, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  for (std::string& token : ascii.tokens)
    std::erase_if(token, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  int compiled = 0;
  for (const std::string program : {"pdflatex", "xelatex", "lualatex"}) {
    if (!can_run(program)) continue;
    CAPTURE(program);
    CHECK(compile(program, document_of(ascii)) == "");
    if (program == "pdflatex") CHECK(compile(program, document_of(everything)) == "");
    if (program == "pdflatex") CHECK(compile(program, document_of(large)) == "");
    // Fonts beyond ASCII need fontspec, a package of its own.
    const bool has_fontspec = run_process({"kpsewhich", "fontspec.sty"}).exit_code == 0;
    if (program != "pdflatex" && has_fontspec) CHECK(compile(program, document_of(strange_session())) == "");
    if (program != "pdflatex" && has_fontspec) CHECK(compile(program, document_of(worked_example())) == "");
    ++compiled;
  }
  if (compiled == 0) MESSAGE("no TeX here: documents are not compiled");
}
