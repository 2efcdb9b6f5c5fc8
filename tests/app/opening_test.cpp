// Files on their way into the window: what is large is read off the UI thread, whatever goes wrong there.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "app/panels/mapping_parts.h"
#include "app/panels/opening.h"
#include "tests/app/harness.h"
#include "tests/app/mapping_on_disk.h"

using namespace qkv;
using namespace qkv::test;

namespace {

constexpr int kBefore = 3;  // tokens of the session that is open first

FileOpening::Read reader(const fs::path& path) {
  return [path](ReadProgress* progress) { return open_file(path, progress); };
}

// W^O makes it large: hardly anything is computed of it.
std::vector<NamedArray> large_arrays() {
  return {array_of("q", {1, 4, 2}, 1), array_of("k", {1, 4, 2}, 2), array_of("v", {1, 4, 128}, 3),
          array_of("wo", {128, 65536}, 4)};
}

// Frames until the file is there.
void wait_until_open(Harness& h, std::size_t tokens) {
  for (int i = 0; i < 6000 && h.app().session().tokens.size() == kBefore; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    h.frames(1);
  }
  CHECK(h.app().session().tokens.size() == tokens);
  h.frames(2);
  CHECK_FALSE(h.has("opening/cancel"));
}

}  // namespace

TEST_CASE("opening: a large file is read off the UI thread, and can be given up") {
  const TensorsOnDisk file(large_arrays());
  Harness h;
  h.app().open_file(file.path());
  CHECK(h.app().session().tokens.size() == kBefore);
  wait_until_open(h, 4);

  std::atomic<int> read = 0;
  FileOpening opening([&] { ++read; });
  opening.start(file.path(), false, reader(file.path()));
  CHECK(opening.is_running());
  opening.give_up();
  CHECK_FALSE(opening.is_running());
  for (int i = 0; i < 6000 && read == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(read == 1);
  CHECK(opening.threads() == 0);
  CHECK_FALSE(opening.take());
  const fs::path missing = file.path().string() + ".missing";
  opening.start(missing, true, reader(missing));
  for (int i = 0; i < 6000 && read == 1; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const std::optional<FileOpening::Finished> finished = opening.take();
  REQUIRE(finished);
  CHECK(finished->ask_what_is_what);
  REQUIRE_FALSE(finished->opened.ok());
  CHECK(finished->opened.error().code == ErrorCode::kCannotRead);
}

TEST_CASE("opening: a small session that refers to a large file is read off the UI thread too") {
  const TensorsOnDisk tensors(large_arrays(), "referred");
  const std::string name = tensors.path().filename().string();
  const auto reference = [&](const std::string& key) {
    return "\"" + key + R"(": {"file": ")" + name + R"(", "name": ")" + key + "\"}";
  };
  const std::string text = R"({"qkvlab": 1, "source": {"kind": "qkv", )" + reference("q") + ", " + reference("k") +
                           ", " + reference("v") + "}, " + reference("wo") + "}";
  const TensorsOnDisk session(text, "refers.qkv.json");
  REQUIRE(fs::file_size(session.path()) < 1000);
  Harness h;
  h.app().open_file(session.path());
  CHECK(h.app().session().tokens.size() == kBefore);
  wait_until_open(h, 4);
  REQUIRE(h.app().session().problem.wo);
  CHECK(h.app().session().problem.wo->cols() == 65536);
}

TEST_CASE("opening: what a reading throws is said, and the session stays") {
  FileOpening opening({});
  const auto message = [&](const FileOpening::Read& read) {
    opening.start("huge.npz", false, read);
    for (int i = 0; i < 6000 && opening.threads() > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::optional<FileOpening::Finished> finished = opening.take();
    REQUIRE(finished);
    REQUIRE_FALSE(finished->opened.ok());
    return finished->opened.error().message;
  };
  using Opened = Result<OpenedFile>;
  CHECK(message([](ReadProgress*) -> Opened { throw std::bad_alloc(); }).starts_with("it does not fit in memory"));
  CHECK(message([](ReadProgress*) -> Opened { throw std::length_error("vector"); }) ==
        message([](ReadProgress*) -> Opened { throw std::bad_alloc(); }));
  CHECK(message([](ReadProgress*) -> Opened { throw std::runtime_error("the reason"); }).ends_with("the reason"));
}

TEST_CASE("opening: the dialog of a large file says how far it is, and Cancel stops the reading") {
  // Text is read slowly enough to be seen.
  const fs::path path = fs::temp_directory_path() / ("qkv_opening_" + std::to_string(::getpid()) + ".csv");
  std::string line = "0.125";
  for (int i = 1; i < 1024; ++i) line += ",0.125";
  std::string text;
  while (text.size() < 2 * kLargeReading) text += line + "\n";
  REQUIRE(write_file_atomically(path, text).ok());
  Harness h;
  h.app().open_file(path);
  h.frames(1);
  REQUIRE(h.has("opening/progress"));
  CHECK(h.center("opening/progress").x == doctest::Approx(720));
  h.click("opening/cancel");
  h.frames(2);
  CHECK_FALSE(h.has("opening/progress"));
  CHECK(h.app().session().tokens.size() == kBefore);  // the one before
  CHECK_FALSE(h.has("mapping/ok"));

  FileOpening opening({});
  opening.start(path, false, reader(path));
  opening.start(path, true, reader(path));  // gives up the one before
  opening.give_up();
  for (int i = 0; i < 6000 && opening.threads() > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(opening.threads() == 0);
  CHECK_FALSE(opening.take());
  fs::remove(path);
}

TEST_CASE("opening: an answer in the mapping dialog is read off the UI thread, and a newer one gives it up") {
  // Without the number of heads, which no shape tells, there is nothing to read.
  const TensorsOnDisk file({array_of("x", {5, 2048}, 1), array_of("c_attn.weight", {2048, 6144}, 2)});
  MappingDialogState state;
  Result<TensorFile> tensors = TensorFile::open(file.path());
  REQUIRE(tensors.ok());
  open_mapping_dialog(state, file.path(), std::move(tensors).value());
  REQUIRE(state.proposal.questions.size() == 1);
  CHECK(state.reading.current() == nullptr);
  state.request.heads = 16;
  mapping_parts::propose(state);
  const Reading<Session>* first = state.reading.current();
  REQUIRE(first != nullptr);
  CHECK_FALSE(state.session);
  state.request.heads = 32;
  mapping_parts::propose(state);
  // A reading that has ended may be gone; where both go on, it is there.
  CHECK((state.reading.threads() < 2 || first->progress().is_cancelled()));
  REQUIRE(state.reading.current() != nullptr);
  CHECK(state.reading.current() != first);
  state.reading.give_up();
  for (int i = 0; i < 6000 && state.reading.threads() > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(state.reading.threads() == 0);

  // Open does not wait for the end.
  Harness h;
  h.app().open_file(file.path());
  h.frames(2);
  h.click("mapping/question");
  h.frames(2);
  h.click("mapping/question/16");
  h.click("mapping/ok");
  wait_until_open(h, 5);
  CHECK_FALSE(h.has("mapping/ok"));
  CHECK(std::get<ProjectedSource>(h.app().session().problem.source).heads == 16);
}

TEST_CASE("opening: a reading that began before the window goes on in it") {
  const auto begin = [](const fs::path& path, FileOpening::Read read) {
    return BegunFile{path, std::make_unique<Reading<OpenedFile>>(std::move(read))};
  };
  const TensorsOnDisk large(large_arrays());
  Harness h;
  h.app().open_file(begin(large.path(), reader(large.path())));
  CHECK(h.app().session().tokens.size() == kBefore);
  wait_until_open(h, 4);

  const TensorsOnDisk small({array_of("q", {1, 5, 2}, 1), array_of("k", {1, 5, 2}, 2), array_of("v", {1, 5, 2}, 3)},
                            "small");
  h.app().open_file(begin(small.path(), reader(small.path())));
  CHECK(h.app().session().tokens.size() == 5);

  // Whatever is thrown there: one line, and the session stays.
  h.app().open_file(begin("huge.npz", [](ReadProgress*) -> Result<OpenedFile> { throw std::bad_alloc(); }));
  h.frames(2);
  CHECK(h.has("toast/0"));
  CHECK(h.app().session().tokens.size() == 5);
  CHECK_FALSE(h.has("opening/progress"));
}
