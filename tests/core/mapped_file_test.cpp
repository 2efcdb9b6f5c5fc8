#include "core/base/mapped_file.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

using namespace qkv;

namespace {

namespace fs = std::filesystem;

// Removed at the end of its scope.
struct TemporaryFile {
  fs::path path = fs::temp_directory_path() / ("qkvlab-mapped-" + std::to_string(std::rand()));
  explicit TemporaryFile(std::string_view content) { REQUIRE(write_file_atomically(path, content).ok()); }
  ~TemporaryFile() { fs::remove(path); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
};

}  // namespace

TEST_CASE("mapped file: small and large files hold their bytes, also after a move") {
  for (const std::size_t size : {std::size_t{0}, std::size_t{5}, MappedFile::kMappedFrom + 3}) {
    CAPTURE(size);
    const std::string content(size, 'x');
    const TemporaryFile file(content);
    Result<MappedFile> opened = MappedFile::open(file.path);
    REQUIRE(opened.ok());
    CHECK(as_text(opened.value().bytes()) == content);
    const std::byte* const start = opened.value().bytes().data();
    MappedFile moved = std::move(opened).value();
    CHECK(moved.bytes().data() == start);
    MappedFile assigned;
    CHECK(assigned.bytes().empty());
    assigned = std::move(moved);
    CHECK(as_text(assigned.bytes()) == content);
    CHECK(assigned.check_length().ok());
  }
}

TEST_CASE("mapped file: a file that another program cuts is told before it is looked at") {
  const TemporaryFile file(std::string(MappedFile::kMappedFrom, 'x'));
  const Result<MappedFile> opened = MappedFile::open(file.path);
  REQUIRE(opened.ok());
  fs::resize_file(file.path, 10);
  const Status status = opened.value().check_length();
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code == ErrorCode::kCannotRead);
  CHECK(status.error().message == "the file has another length than when it was opened: open it again");
}

TEST_CASE("mapped file: one that is replaced stays as it was opened") {
  const TemporaryFile file(std::string(MappedFile::kMappedFrom, 'x'));
  const Result<MappedFile> opened = MappedFile::open(file.path);
  REQUIRE(opened.ok());
  REQUIRE(write_file_atomically(file.path, "new").ok());
  CHECK(opened.value().check_length().ok());
  CHECK(opened.value().bytes().back() == std::byte{'x'});
}

TEST_CASE("mapped file: what cannot be read says why") {
  const Result<MappedFile> missing = MappedFile::open("/nonexistent/x");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code == ErrorCode::kCannotRead);
  CHECK(missing.error().message == "No such file or directory");
  CHECK(MappedFile::open("/tmp").error().message == "Is a directory");
  CHECK(MappedFile::open("/dev/null").value().bytes().empty());
}
