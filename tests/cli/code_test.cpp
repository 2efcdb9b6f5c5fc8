// `qkvlab code`.
#include "tests/cli/support.h"

using namespace qkv::test;

namespace {

std::string python() {
  for (const std::string name : {"/usr/bin/python3", "python3"}) {
    if (run_process({name, "-c", "import numpy"}).exit_code == 0) return name;
  }
  FAIL("install python3-numpy: it runs the scripts");
  return "";
}

}  // namespace

TEST_CASE("code: printed, or written to a file") {
  const TempFolder folder;
  const Finished printed = qkvlab({"code", "worked_example", "--as", "numpy", "--causal"});
  CHECK(printed.exit_code == 0);
  CHECK(printed.err == "");
  CHECK(printed.out.find("keep &= j <= i") != std::string::npos);
  check_silent(qkvlab({"code", "worked_example", "--as", "numpy", "--causal", "-o", folder / "a.py"}));
  CHECK(read_text(folder / "a.py") == printed.out);
  check_silent(qkvlab({"code", "worked_example", "--as", "latex", "-o", folder / "a.tex"}));
  CHECK(read_text(folder / "a.tex").find("\\begin{document}") != std::string::npos);
  check_silent(qkvlab({"code", "worked_example", "--as", "pytorch", "-o", folder / "b.py"}));
  CHECK(read_text(folder / "b.py").find("import torch") != std::string::npos);
  CHECK(folder.names() == std::vector<std::string>{"a.py", "a.tex", "b.py"});  // no numbers beside them
  const Finished ran = run_process({python(), folder / "a.py"});
  CHECK(ran.exit_code == 0);
  CHECK(ran.out.find("0.0811") == std::string::npos);
  CHECK(ran.out.find("0.7604") != std::string::npos);  // e^{5/√3} / (e^{5/√3} + e^{3/√3})
}

TEST_CASE("code: many numbers go into a file beside the script") {
  const TempFolder folder;
  REQUIRE(run_process({python(), "-c",
                       "import sys, numpy as np\nr = np.random.default_rng(1)\n"
                       "np.savez(sys.argv[1], **{n: r.normal(size=(2, 60, 64)).astype('f4') for n in 'qkv'})",
                       folder / "large.npz"})
              .exit_code == 0);
  const std::string file = folder / "large.npz";
  check_refused(qkvlab({"code", file, "--as", "numpy"}), 2, "has 23040 numbers");
  // The numbers' file would be the input.
  check_refused(qkvlab({"code", file, "--as", "numpy", "-o", folder / "large.py"}), 2, "is the input file");
  check_refused(qkvlab({"code", file, "--as", "numpy", "-o", folder / "code.npz"}), 2, "name that ends in .py");
  CHECK(folder.names() == std::vector<std::string>{"large.npz"});
  check_silent(qkvlab({"code", file, "--as", "numpy", "--causal", "-o", folder / "code \"x\".py"}));
  CHECK(folder.names() == std::vector<std::string>{"code \"x\".npz", "code \"x\".py", "large.npz"});
  CHECK(read_text(folder / "code \"x\".py").size() < 3000);
  REQUIRE(run_process({python(), folder / "code \"x\".py", folder / "steps.npz"}).exit_code == 0);
  check_silent(qkvlab({"run", file, "--causal", "--precision", "float64", "-o", folder / "ours.npz"}));
  const Finished compared =
      run_process({python(), "-c",
                   "import sys, numpy as np\na, b = np.load(sys.argv[1]), np.load(sys.argv[2])\n"
                   "assert set(a) <= set(b), set(a) - set(b)\n"
                   // Weights are at most 1, and their scores about 10: 64 products of float64 numbers.
                   "for name in ('attn', 'heads_out'): assert np.abs(a[name] - b[name]).max() < 1e-13, name\n"
                   "assert (a['keep'] == b['keep']).all() and a['keep'].dtype == np.uint8",
                   folder / "steps.npz", folder / "ours.npz"});
  CHECK_MESSAGE(compared.exit_code == 0, compared.err);
}

TEST_CASE("code: wrong usage says what is right") {
  const TempFolder folder;
  check_refused(qkvlab({"code", "worked_example"}), 2, "--as");
  check_refused(qkvlab({"code", "worked_example", "--as", "jax"}), 2, "there are numpy, pytorch, latex");
  check_refused(qkvlab({"code", "nowhere", "--as", "numpy"}), 3, "no such file");
  check_refused(qkvlab({"code", "worked_example", "--as", "numpy", "-o", folder / "no/a.py"}), 5, "no");
  check_refused(qkvlab({"code", "worked_example", "--as", "numpy", "--window", "0"}), 2, "window");
  const Finished help = qkvlab({"code", "--help"});
  CHECK(help.exit_code == 0);
  CHECK(help.out.find("numpy, pytorch or latex") != std::string::npos);
}
