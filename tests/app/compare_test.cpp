// The Compare tab: what it shows of another file, and what a click on it does.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "app/engine/compare.h"
#include "core/base/file.h"
#include "core/session/session_file.h"
#include "core/session/session_tensors.h"
#include "tests/app/harness.h"
#include "tests/app/mapping_on_disk.h"

using namespace qkv;
using namespace qkv::test;

namespace {

// A file that goes away with the test.
class TempFile {
 public:
  TempFile(const std::string& name, const Session& session)
      : path_(std::filesystem::temp_directory_path() / (name + "-" + std::to_string(::getpid()) + ".qkv.json")) {
    REQUIRE(write_session(session, path_).ok());
  }
  ~TempFile() { std::filesystem::remove(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Weights of so many layers under a name that says nothing, "pt": the example's in the second, others elsewhere.
std::vector<NamedArray> weights_of_layers(std::uint64_t layers) {
  const Result<Trace> trace = forward(worked_example().problem);
  REQUIRE(trace.ok());
  std::vector<NamedArray> arrays = arrays_of(trace.value());
  std::erase_if(arrays, [](const NamedArray& array) { return array.name != "attn"; });
  NamedArray& attn = arrays.at(0);
  const std::vector<float> ours = std::get<std::vector<float>>(attn.values);
  std::vector<float> all(ours.size() * layers, 0.5f);
  std::ranges::copy(ours, all.begin() + static_cast<std::ptrdiff_t>(ours.size()));
  attn.name = "pt";
  attn.shape.insert(attn.shape.begin(), layers);
  attn.values = all;
  return arrays;
}

// The tab against `other`, compared and drawn.
void open_comparison(Harness& h, const std::filesystem::path& other) {
  h.app().compare_with(other);
  h.frames(1);
  h.app().wait_for_results();
  h.frames(3);
}

Session causal_example() {
  Session session = worked_example();
  session.problem.options.causal = true;
  return session;
}

}  // namespace

TEST_CASE("a comparison has what the window shows: ours, theirs, and why they differ") {
  const TempFile other("causal", causal_example());
  const auto result = compare_with_file({worked_example(), other.path()}, nullptr);
  REQUIRE(result.ok());
  const CompareResult& compared = *result.value();
  for (std::size_t i = 0; i < compared.ours.size(); ++i) {
    const Difference& difference = compared.comparison.differences[i];
    for (std::size_t head = 0; head < compared.ours[i].size(); ++head) {
      const Matrix errors = compared.theirs[i][head] - compared.ours[i][head];
      CHECK((errors - difference.errors[head]).array().abs().maxCoeff() <= 1e-6F);
    }
  }
  CHECK(compared.comparison.diagnosis.explanations.at(0).causes.at(0).id == "causal-added");
  const auto missing = compare_with_file({worked_example(), "/nowhere/none.npz"}, nullptr);
  REQUIRE(!missing.ok());
  CHECK(missing.error().message.starts_with("none.npz: "));
}

TEST_CASE("the tab comes with a comparison, and a click on the first wrong cell chooses it") {
  const TempFile other("causal", causal_example());
  Harness h;
  h.frames(2);
  CHECK(!h.has("tab/compare"));
  open_comparison(h, other.path());
  CHECK(h.has("tab/compare"));
  CHECK(h.has("matrix/ours"));
  CHECK(h.has("matrix/theirs"));
  CHECK(h.has("matrix/difference"));
  CHECK(h.has("compare/cause"));
  CHECK(h.has("compare/matrix/attn"));
  h.click("compare/matrix/attn");
  h.frames(2);
  h.click("compare/first-wrong");
  h.frames(2);
  // It is explained at the right, as any cell.
  CHECK(h.has("matrix/difference/cell/0,0"));
  h.click("tab/head");
  h.frames(3);
  CHECK(!h.has("matrix/theirs"));
  CHECK(h.has("matrix/attn/1"));
  CHECK(h.has("tab/compare"));
  h.click("tab/compare");
  h.frames(2);
  CHECK(h.has("matrix/theirs"));
}

TEST_CASE("an edit is compared anew, and another session takes the tab away") {
  const TempFile other("causal", causal_example());
  Harness h;
  open_comparison(h, other.path());
  CHECK(h.has("compare/first-wrong"));
  h.app().open(causal_example(), {});
  h.frames(2);
  CHECK(!h.has("tab/compare"));
  open_comparison(h, other.path());
  CHECK(h.has("matrix/theirs"));
  CHECK(!h.has("compare/first-wrong"));  // all is equal
}

TEST_CASE("a file that cannot be compared says why") {
  Harness h;
  open_comparison(h, "/nowhere/none.npz");
  CHECK(h.has("compare/failure"));
  CHECK(!h.has("matrix/theirs"));
}

TEST_CASE("arrays of other names are chosen in the tab") {
  const TensorsOnDisk file(weights_of_layers(2));
  Harness h;
  open_comparison(h, file.path());
  CHECK(h.has("compare/failure"));
  CHECK(!h.has("compare/names"));
  const auto choose = [&](const std::string& part) {
    h.click("compare/name/attn");
    h.frames(2);
    h.click("compare/name/attn/" + part);
    h.frames(1);
    if (part.starts_with("pt")) CHECK(!h.has("compare/failure"));  // that of the choice before
    h.app().wait_for_results();
    h.frames(3);
  };
  choose("pt[1]");
  CHECK(!h.has("compare/failure"));
  CHECK(h.has("matrix/theirs"));
  CHECK(!h.has("compare/first-wrong"));  // all is equal
  CHECK(h.has("compare/name/attn"));     // there may be others to choose
  h.click("compare/names");
  h.frames(2);
  CHECK(!h.has("compare/name/attn"));
  h.click("compare/names");
  h.frames(2);
  choose("pt[0]");
  CHECK(h.has("compare/first-wrong"));
  choose("as its name says");
  CHECK(h.has("compare/failure"));
}

TEST_CASE("in a small window the fields for arrays, their lists and the matrices are all in sight") {
  constexpr int kHeight = 650;
  const TensorsOnDisk file(weights_of_layers(40));
  Harness h(1000, kHeight);
  open_comparison(h, file.path());
  h.click("compare/name/attn");
  h.frames(2);
  CHECK(h.center("compare/name/attn/pt[0]").y > 0);
  h.click("compare/name/attn/pt[0]");
  h.frames(1);
  h.app().wait_for_results();
  h.frames(3);
  CHECK(h.has("compare/name/attn"));
  CHECK(h.center("matrix/theirs").y < kHeight);
  CHECK(h.center("compare/first-wrong").y < kHeight);
}

TEST_CASE("weights alone are compared with no array, so none is to be chosen") {
  Session weights = worked_example();
  weights.problem = Problem{};
  weights.problem.source = WeightsSource{{Matrix(Matrix::Constant(3, 3, 0.25f))}};
  const TensorsOnDisk file(weights_of_layers(2));
  Harness h;
  h.app().open(weights, {});
  h.frames(2);
  open_comparison(h, file.path());
  CHECK(h.has("compare/failure"));
  CHECK(!h.has("compare/name/attn"));
}

TEST_CASE("the comparison is exported as the tab shows it, and other views beside it") {
  const TempFile other("causal", causal_example());
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("compare-export-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  Harness h;
  open_comparison(h, other.path());
  h.click("compare/matrix/scaled");
  h.frames(2);
  const auto export_as = [&](const std::string& name) {
    h.click("export/path");
    h.key(Key::kA, true);
    h.type((folder / name).string());
    h.click("export/ok");
    h.frames(2);
    const Result<Bytes> bytes = read_file(folder / name);
    REQUIRE(bytes.ok());
    return std::string(as_text(bytes.value()));
  };
  h.key(Key::kE, true);
  CHECK(!h.has("export/matrix"));  // it is the one that is shown
  const std::string compared = export_as("a.svg");
  CHECK(compared.find(">Theirs − ours<") != std::string::npos);
  CHECK(compared.find(">scaled<") != std::string::npos);
  h.key(Key::kE, true);
  h.click("export/view");
  h.click("export/view/All heads");
  const std::string heads = export_as("b.svg");
  CHECK(heads.find("Theirs") == std::string::npos);
  CHECK(heads.find(">attention weights<") != std::string::npos);
  // Elsewhere there is no comparison to export.
  h.click("tab/head");
  h.frames(2);
  h.key(Key::kE, true);
  h.click("export/view");
  CHECK(h.has("export/view/All heads"));
  CHECK(!h.has("export/view/The comparison"));
  std::filesystem::remove_all(folder);
}
