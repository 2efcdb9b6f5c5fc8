// Matrices and code out of the window.
#include <doctest/doctest.h>

#include <filesystem>

#include "core/session/code.h"
#include "core/tensor_io/tensor_file.h"
#include "tests/app/harness.h"
#include "tests/cli/process.h"

using namespace qkv;

namespace {

void choose(Harness& h, const std::string& menu, const std::string& item) {
  h.click("menu/" + menu);
  h.click("menu-item/" + item);
}

// Saves through the file dialog, which proposes a name.
void save_as(Harness& h, const std::string& item, const std::string& path) {
  choose(h, "File", item);
  REQUIRE(h.has("file-dialog/name"));
  h.key(Key::kA, true);
  h.type(path);
  h.key(Key::kEnter);
  h.frames(2);
}

}  // namespace

TEST_CASE("Copy matrix copies all of the chosen cell's matrix, as it is drawn") {
  Harness h;
  h.click("matrix/q/1/cell/1,1");
  choose(h, "Edit", "Copy matrix");
  CHECK(h.clipboard() == "1\t0\t1\n1\t2\t1\n1\t1\t1");
  h.click("matrix/k/1/cell/0,1");  // K stands transposed
  h.key(Key::kC, true, true);
  CHECK(h.clipboard() == "0\t1\t2\n2\t0\t0\n1\t2\t1");
  h.key(Key::kEscape);
  h.point_at({5, 500});
  choose(h, "Edit", "Copy matrix");  // nothing chosen: the weights
  CHECK(h.clipboard().starts_with("0.136"));
}

TEST_CASE("Copy as NumPy, PyTorch and LaTeX puts the session's code on the clipboard") {
  Harness h;
  choose(h, "Edit", "Copy as NumPy");
  CHECK(h.clipboard() == numpy_script(h.app().session()));
  choose(h, "Edit", "Copy as PyTorch");
  CHECK(h.clipboard() == pytorch_script(h.app().session()));
  choose(h, "Edit", "Copy as LaTeX");
  CHECK(h.clipboard() == latex_document(h.app().session(), *h.app().trace()));
}

TEST_CASE("a session with too many numbers for the clipboard names the command") {
  Harness h;
  Session large = worked_example();
  const Matrix matrix = Matrix::Ones(100, 128);
  large.problem.source = DirectSource{{matrix}, {matrix}, {matrix}};
  large.tokens.assign(100, "t");
  h.app().open(large, {});
  h.set_clipboard("before");
  choose(h, "Edit", "Copy as NumPy");
  CHECK(h.clipboard() == "before");
  CHECK(h.has("toast/0"));
}

TEST_CASE("Save matrix writes the chosen one, Save all every one") {
  const test::TempFolder folder;
  Harness h;
  h.click("matrix/heads_out/1/cell/0,0");
  save_as(h, "Save matrix as…", folder / "o.npy");
  const Result<TensorFile> matrix = TensorFile::open(folder / "o.npy");
  REQUIRE(matrix.ok());
  CHECK(matrix.value().tensors()[0].shape == std::vector<std::uint64_t>{3, 3});
  const Matrix& o = h.trace(MatrixKind::kHeadsOut);
  CHECK(matrix.value().read("o").value().values == std::vector<float>(o.data(), o.data() + o.size()));

  h.click("matrix/scores/1/cell/0,0");
  save_as(h, "Save matrix as…", folder / "s");  // no end: .csv
  CHECK(test::read_text(folder / "s.csv") == "1,3,3\n5,3,3\n3,3,3\n");

  save_as(h, "Save all matrices as .npz…", folder / "all.npz");
  const Result<TensorFile> all = TensorFile::open(folder / "all.npz");
  REQUIRE(all.ok());
  CHECK(all.value().tensors().size() == 9);
  CHECK(folder.names() == std::vector<std::string>{"all.npz", "o.npy", "s.csv"});
}

TEST_CASE("Save matrix puts the tokens around the numbers where that is asked for") {
  const test::TempFolder folder;
  Harness h;
  h.click("matrix/scores/1/cell/0,0");
  choose(h, "File", "Save all matrices as .npz…");
  CHECK_FALSE(h.has("file-dialog/labels"));
  h.key(Key::kEscape);
  h.frames(2);
  choose(h, "File", "Save matrix as…");
  h.click("file-dialog/labels");
  h.click("file-dialog/name");
  h.key(Key::kA, true);
  h.type(folder / "s.csv");
  h.key(Key::kEnter);
  h.frames(2);
  CHECK(test::read_text(folder / "s.csv") == ",貓,追,老鼠\n貓,1,3,3\n追,5,3,3\n老鼠,3,3,3\n");
  save_as(h, "Save matrix as…", folder / "s.npy");  // which has no room for them
  CHECK(TensorFile::open(folder / "s.npy").ok());
}

TEST_CASE("a streamed session saves what is held, and says why not the rest") {
  const test::TempFolder folder;
  Harness h(1440, 900, 1000);
  Session large = worked_example();
  const Matrix matrix = Matrix::Random(96, 2);
  large.problem.source = DirectSource{{matrix}, {matrix}, {matrix}};
  large.tokens.assign(96, "t");
  h.app().open(large, {});
  h.app().wait_for_results();
  h.frames(3);
  REQUIRE_FALSE(h.app().trace()->streams.empty());
  save_as(h, "Save all matrices as .npz…", folder / "all.npz");
  const Result<TensorFile> all = TensorFile::open(folder / "all.npz");
  REQUIRE(all.ok());
  CHECK(all.value().find("heads_out") != nullptr);
  CHECK(all.value().find("attn") == nullptr);
}
