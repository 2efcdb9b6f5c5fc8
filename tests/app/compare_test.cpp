// The Compare tab: what it shows of another file, and what a click on it does.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "app/engine/compare.h"
#include "core/session/session_file.h"
#include "tests/app/harness.h"

using namespace qkv;

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
  h.app().compare_with(other.path());
  h.frames(1);
  h.app().wait_for_results();
  h.frames(3);
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
  h.app().compare_with(other.path());
  h.frames(1);
  h.app().wait_for_results();
  h.frames(3);
  CHECK(h.has("compare/first-wrong"));
  h.app().open(causal_example(), {});
  h.frames(2);
  CHECK(!h.has("tab/compare"));
  h.app().compare_with(other.path());
  h.frames(1);
  h.app().wait_for_results();
  h.frames(3);
  CHECK(h.has("matrix/theirs"));
  CHECK(!h.has("compare/first-wrong"));  // all is equal
}

TEST_CASE("a file that cannot be compared says why") {
  Harness h;
  h.app().compare_with("/nowhere/none.npz");
  h.frames(1);
  h.app().wait_for_results();
  h.frames(2);
  CHECK(h.has("compare/failure"));
  CHECK(!h.has("matrix/theirs"));
}
