#include "core/base/file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace fs = std::filesystem;
using namespace qkv;

namespace {

// A directory of its own for one test, removed at the end.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "qkv-base-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  fs::path operator/(const char* name) const { return path_ / name; }
  const fs::path& path() const { return path_; }
  long entries() const { return std::distance(fs::directory_iterator(path_), fs::directory_iterator()); }

 private:
  fs::path path_;
};

// Acts as an unprivileged user for a while where the tests run as root, whom no permission stops.
class Unprivileged {
 public:
  Unprivileged() : was_root_(::geteuid() == 0) {
    if (was_root_) REQUIRE(::seteuid(65534) == 0);
  }
  ~Unprivileged() {
    if (was_root_ && ::seteuid(0) != 0) std::abort();
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

 private:
  bool was_root_;
};

std::string content_of(const fs::path& path) {
  const Result<Bytes> bytes = read_file(path);
  REQUIRE(bytes.ok());
  return std::string(as_text(bytes.value()));
}

mode_t mode_of(const fs::path& path) {
  struct stat info {};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

}  // namespace

TEST_SUITE("file") {
  TEST_CASE("bytes come back as written") {
    const Folder folder;
    std::string all_bytes;
    for (int i = 0; i < 100'000; ++i) all_bytes += static_cast<char>(i * 7 % 256);
    for (const std::string& content : {std::string(), std::string("x"), std::string("a\0b\r\n", 5), all_bytes}) {
      REQUIRE(write_file_atomically(folder / "f", content).ok());
      CHECK(content_of(folder / "f") == content);
      CHECK(folder.entries() == 1);
    }
  }

  TEST_CASE("a name without a directory is written to the working directory") {
    const Folder folder;
    const fs::path before = fs::current_path();
    fs::current_path(folder.path());
    const bool written = write_file_atomically("plain", "content").ok();
    fs::current_path(before);
    CHECK(written);
    CHECK(content_of(folder / "plain") == "content");
  }

  TEST_CASE("reading says why it failed") {
    const Folder folder;
    const Result<Bytes> missing = read_file(folder / "missing");
    REQUIRE(!missing.ok());
    CHECK(missing.error().code == ErrorCode::kCannotRead);
    CHECK(missing.error().message == "No such file or directory");

    const Result<Bytes> directory = read_file(folder.path());
    REQUIRE(!directory.ok());
    CHECK(directory.error().code == ErrorCode::kCannotRead);
    CHECK(directory.error().message == "Is a directory");
  }

  TEST_CASE("the size limit is inclusive and holds for files of unknown size") {
    const Folder folder;
    REQUIRE(write_file_atomically(folder / "ten", "0123456789").ok());
    CHECK(read_file(folder / "ten", 10).ok());
    const Result<Bytes> too_large = read_file(folder / "ten", 9);
    REQUIRE(!too_large.ok());
    CHECK(too_large.error().code == ErrorCode::kBadInput);
    CHECK(too_large.error().message.find("limit of 9 bytes") != std::string::npos);

    const Result<Bytes> endless = read_file("/dev/zero", 1'000'000);
    REQUIRE(!endless.ok());
    CHECK(endless.error().code == ErrorCode::kBadInput);
  }

  TEST_CASE("an unwritable directory keeps its content and gets nothing new") {
    const Folder folder;
    REQUIRE(write_file_atomically(folder / "old", "old").ok());
    REQUIRE(::chmod((folder / "old").c_str(), 0666) == 0);
    REQUIRE(::chmod(folder.path().c_str(), 0555) == 0);
    {
      const Unprivileged user;
      for (const char* name : {"old", "new"}) {
        const Status status = write_file_atomically(folder / name, "new content");
        REQUIRE(!status.ok());
        CHECK(status.error().code == ErrorCode::kCannotWrite);
        CHECK(status.error().message == "Permission denied");
      }
    }
    REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
    CHECK(folder.entries() == 1);
    CHECK(content_of(folder / "old") == "old");
  }

  TEST_CASE("a read-only file is not replaced") {
    const Folder folder;
    REQUIRE(write_file_atomically(folder / "f", "kept").ok());
    REQUIRE(::chmod((folder / "f").c_str(), 0444) == 0);
    REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);
    {
      const Unprivileged user;
      CHECK(!write_file_atomically(folder / "f", "lost").ok());
    }
    CHECK(content_of(folder / "f") == "kept");
    CHECK(folder.entries() == 1);
  }

  TEST_CASE("a missing directory or a directory in the way is an error") {
    const Folder folder;
    const Status missing = write_file_atomically(folder / "none" / "f", "x");
    REQUIRE(!missing.ok());
    CHECK(missing.error().code == ErrorCode::kCannotWrite);
    const Status directory = write_file_atomically(folder.path(), "x");
    REQUIRE(!directory.ok());
    CHECK(directory.error().message == "Is a directory");
    CHECK(folder.entries() == 0);
  }

  TEST_CASE("a write that fails halfway leaves the old content and no temporary file") {
    const Folder folder;
    REQUIRE(write_file_atomically(folder / "f", "old").ok());
    struct rlimit before {};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    const auto previous_handler = ::signal(SIGXFSZ, SIG_IGN);
    const struct rlimit small = {1000, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    const Status status = write_file_atomically(folder / "f", std::string(5000, 'x'));
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
    ::signal(SIGXFSZ, previous_handler);

    REQUIRE(!status.ok());
    CHECK(status.error().code == ErrorCode::kCannotWrite);
    CHECK(status.error().message == "File too large");
    CHECK(content_of(folder / "f") == "old");
    CHECK(folder.entries() == 1);
  }

  TEST_CASE("an existing file keeps its permissions; a new one follows the umask") {
    const Folder folder;
    REQUIRE(write_file_atomically(folder / "f", "1").ok());
    for (const mode_t mode : {mode_t{0600}, mode_t{0640}, mode_t{0755}, mode_t{0666}}) {
      REQUIRE(::chmod((folder / "f").c_str(), mode) == 0);
      REQUIRE(write_file_atomically(folder / "f", "2").ok());
      CHECK(mode_of(folder / "f") == mode);
    }
    const mode_t mask = ::umask(027);
    const Status status = write_file_atomically(folder / "g", "x");
    ::umask(mask);
    REQUIRE(status.ok());
    CHECK(mode_of(folder / "g") == 0640);
  }

  TEST_CASE("a symbolic link keeps pointing where it did") {
    const Folder folder;
    REQUIRE(fs::create_directory(folder / "sub"));
    REQUIRE(write_file_atomically(folder / "sub" / "target", "old").ok());
    fs::create_symlink("sub/target", folder / "relative");
    fs::create_symlink(folder / "relative", folder / "chain");
    fs::create_symlink("sub/absent", folder / "dangling");

    REQUIRE(write_file_atomically(folder / "chain", "new").ok());
    REQUIRE(write_file_atomically(folder / "dangling", "made").ok());
    CHECK(fs::is_symlink(folder / "chain"));
    CHECK(fs::is_symlink(folder / "relative"));
    CHECK(fs::is_symlink(folder / "dangling"));
    CHECK(content_of(folder / "sub" / "target") == "new");
    CHECK(content_of(folder / "sub" / "absent") == "made");
    CHECK(folder.entries() == 4);

    fs::create_symlink("circle", folder / "circle");
    const Status circle = write_file_atomically(folder / "circle", "x");
    REQUIRE(!circle.ok());
    CHECK(circle.error().code == ErrorCode::kCannotWrite);
    CHECK(fs::is_symlink(folder / "circle"));
  }

  TEST_CASE("a pipe takes the bytes and stays a pipe") {
    const Folder folder;
    REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
    const int reader = ::open((folder / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
    REQUIRE(reader >= 0);
    CHECK(write_file_atomically(folder / "pipe", "through").ok());
    char buffer[16] = {};
    CHECK(::read(reader, buffer, sizeof buffer) == 7);
    ::close(reader);
    CHECK(std::string(buffer) == "through");
    CHECK(fs::is_fifo(folder / "pipe"));
  }
}
