// What `qkvlab run` writes, as NumPy reads it.
#include "tests/cli/support.h"

using namespace qkv::test;

namespace {

// A Python that has NumPy.
std::string python() {
  for (const std::string name : {"/usr/bin/python3", "python3"}) {
    if (run_process({name, "-c", "import numpy"}).exit_code == 0) return name;
  }
  FAIL("install python3-numpy: it reads the arrays");
  return "";
}

// Runs Python lines with `folder` as the first argument; they assert.
void check_python(const TempFolder& folder, const std::string& lines) {
  const Finished finished =
      run_process({python(), "-c", "import sys, numpy as np\nd = sys.argv[1] + '/'\n" + lines, folder.path().string()});
  CHECK_MESSAGE(finished.exit_code == 0, finished.err);
}

// Two heads whose numbers are hard to write: NaN, infinities, −0, subnormals, and one that is rounded twice.
void write_hard(const TempFolder& folder) {
  write_text(folder / "hard.qkv.json",
             R"({"qkvlab": 1, "tokens": ["a, \"b\"", "c"], "source": {"kind": "qkv",
 "q": [[[1e-45, -0.0], [3.4028235e38, 0.1]], [["nan", "inf"], ["-inf", 7.038531e-26]]],
 "k": [[[1, 0.3], [0.7, -2]], [[1, 2], [3, 4]]],
 "v": [[[0.1, 0.2], [0.3, 0.4]], [[5, 6], [7, 8]]]}, "attention": {"causal": true}})");
}

}  // namespace

TEST_CASE("arrays: every array reads in NumPy to the same bits, whatever the file") {
  const TempFolder folder;
  write_hard(folder);
  const std::string session = folder / "hard.qkv.json";
  check_silent(qkvlab({"run", session, "-o", folder / "all.npz"}));
  for (const std::string name : {"q", "k", "v", "scores", "scaled", "attn", "heads_out"}) {
    check_silent(qkvlab({"run", session, "--only", name, "-o", folder / (name + ".npy")}));
    for (const std::string head : {"0", "1"}) {
      check_silent(qkvlab({"run", session, "--only", name, "--head", head, "-o", folder / (name + head + ".csv")}));
      check_silent(qkvlab({"run", session, "--only", name, "--head", head, "-o", folder / (name + head + ".npy")}));
    }
  }
  for (const std::string name : {"keep", "concat"}) {
    check_silent(qkvlab({"run", session, "--only", name, "-o", folder / (name + ".npy")}));
    check_silent(qkvlab({"run", session, "--only", name, "-o", folder / (name + ".csv")}));
  }
  check_python(folder, R"(
def same(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, b.dtype, a.shape, b.shape)
    both = np.isnan(a) & np.isnan(b) if a.dtype.kind == 'f' else np.zeros(a.shape, bool)
    bits = a.dtype.str.replace('f', 'u')
    assert ((a.view(bits) == b.view(bits)) | both).all(), (a, b)
all = np.load(d + 'all.npz')
def text(name): return np.loadtxt(d + name + '.csv', delimiter=',', ndmin=2)
for name in ['q', 'k', 'v', 'scores', 'scaled', 'attn', 'heads_out']:
    same(np.load(d + name + '.npy'), all[name])
    for h in range(2):
        same(np.load(d + name + str(h) + '.npy'), np.ascontiguousarray(all[name][h]))
        same(text(name + str(h)).astype(np.float32), np.ascontiguousarray(all[name][h]))
same(np.load(d + 'keep.npy'), all['keep'])
same(text('keep').astype(np.uint8), all['keep'])
same(text('concat').astype(np.float32), all['concat'])
assert all['keep'].dtype == np.uint8 and all['keep'].tolist() == [[1, 0], [1, 1]]
assert np.isnan(all['q'][1, 0, 0]) and all['q'][1, 1, 0] == -np.inf and np.signbit(all['q'][0, 0, 1])
)");
}

TEST_CASE("arrays: float64 steps keep their digits as text") {
  const TempFolder folder;
  check_silent(qkvlab({"run", "worked_example", "--precision", "float64", "-o", folder / "all.npz"}));
  check_silent(
      qkvlab({"run", "worked_example", "--precision", "float64", "--only", "attn", "-o", folder / "attn.csv"}));
  check_python(folder, R"(
a, b = np.load(d + 'all.npz')['attn'], np.loadtxt(d + 'attn.csv', delimiter=',')
assert a.dtype == np.float64 and (a[0] == b).all()
)");
}

TEST_CASE("arrays: what one array or one matrix cannot hold is refused before it is computed") {
  const TempFolder folder;
  const std::string csv = folder / "a.csv", npy = folder / "a.npy";
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"run", "thinking_machines"});
    return qkvlab(words);
  };
  check_refused(run({"-o", csv}), 2, "a .csv file holds one matrix: name it with --only NAME");
  check_refused(run({"-o", npy}), 2, "an .npy file holds one array");
  check_refused(run({"-o", npy, "--only", "q,k"}), 2, "an .npy file holds one array");
  check_refused(run({"-o", csv, "--only", "attn"}), 2, "one for each of 8 heads: choose one with --head 0 … 7");
  check_refused(run({"-o", csv, "--only", "attn", "--head", "8"}), 2, "not a whole number from 0 to 7");
  check_refused(run({"-o", csv, "--only", "out", "--head", "0"}), 2, "out is one for all heads");
  check_refused(run({"-o", folder / "a.npz", "--only", "attn", "--head", "0"}), 2, "--head: goes with one array");
  check_refused(run({"-o", npy, "--only", "attn", "--gradient", "sum-of-squares"}), 2, "--gradient writes several");
  check_refused(run({"-o", npy, "--only", "bias"}), 2, "has no bias");
  CHECK(folder.names().empty());
}

TEST_CASE("arrays: --labels writes tokens around the numbers, which NumPy and qkvlab read") {
  const TempFolder folder;
  const std::string session = folder / "s.qkv.json";
  write_text(session, R"({"qkvlab": 1, "tokens": ["a, \"b\"", "#c", "2"], "source": {"kind": "qkv",
 "q": [[[1e-45, -0.0], [3e38, 0.1], [0.3, 7]]], "k": [[[1, 0.3], [0.7, -2], [0, 1]]],
 "v": [[[0.1, 0.2], [0.3, 0.4], [5, 6]]]}})");
  for (const std::string name : {"attn", "q"}) {
    check_silent(qkvlab({"run", session, "--only", name, "-o", folder / (name + ".csv"), "--labels"}));
    check_silent(qkvlab({"run", session, "--only", name, "-o", folder / (name + ".npy")}));
  }
  CHECK(read_text(folder / "attn.csv").starts_with(",\"a, \"\"b\"\"\",#c,2\n"));
  check_python(folder, R"(
for name, cols in [('attn', 3), ('q', 2)]:
    expected = np.load(d + name + '.npy')[0]
    got = np.loadtxt(d + name + '.csv', delimiter=',', skiprows=1, usecols=range(1, cols + 1), comments=None,
                     quotechar='"', encoding='utf-8')
    assert (got.astype(np.float32).view('u4') == expected.view('u4')).all(), (got, expected)
)");
  // What was written is read: the weights with their tokens, and again to the same bits.
  check_silent(qkvlab({"run", folder / "attn.csv", "--only", "attn", "-o", folder / "again.csv", "--labels"}));
  CHECK(read_text(folder / "again.csv") == read_text(folder / "attn.csv"));

  // Where no token has a comma or a line break, the older reader manages too.
  check_silent(qkvlab({"run", "worked_example", "--only", "attn", "-o", folder / "plain.csv", "--labels"}));
  check_silent(qkvlab({"run", "worked_example", "--only", "attn", "-o", folder / "plain.npy"}));
  check_python(folder, R"(
table = np.genfromtxt(d + 'plain.csv', delimiter=',', skip_header=1, comments=None, encoding='utf-8')
assert (table[:, 1:].astype(np.float32) == np.load(d + 'plain.npy')[0]).all()
)");
  check_refused(qkvlab({"run", session, "-o", folder / "all.npz", "--labels"}), 2, "--labels: goes with a .csv file");
}
