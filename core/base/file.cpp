#include "core/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <system_error>
#include <utility>

namespace qkv {
namespace {

namespace fs = std::filesystem;

// The text of an errno value, such as "Permission denied".
std::string reason(int error) { return std::error_code(error, std::generic_category()).message(); }
Error cannot_read(int error) { return {ErrorCode::kCannotRead, reason(error)}; }
Error cannot_write(int error) { return {ErrorCode::kCannotWrite, reason(error)}; }

// An open file descriptor; closed at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  // 0 or the errno value: a network file system may report a failed write only here.
  int close() {
    const int fd = std::exchange(fd_, -1);
    return fd >= 0 && ::close(fd) != 0 ? errno : 0;
  }

 private:
  int fd_;
};

// Removes a file at the end of its scope unless it was released.
class RemoveOnExit {
 public:
  explicit RemoveOnExit(fs::path path) : path_(std::move(path)) {}
  ~RemoveOnExit() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  RemoveOnExit(const RemoveOnExit&) = delete;
  RemoveOnExit& operator=(const RemoveOnExit&) = delete;
  void reset(fs::path path) { path_ = std::move(path); }
  void release() { path_.clear(); }

 private:
  fs::path path_;
};

int open_again_if_interrupted(const fs::path& path, int flags, mode_t mode = 0) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

// 0 or an errno value.
int write_all(int fd, std::span<const std::byte> content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) content = content.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

// The file that a chain of symbolic links ends at, which need not exist; `path` itself if it is no link.
// An empty path means that the chain is a circle.
fs::path follow_links(fs::path path) {
  constexpr int kMaxLinks = 40;  // as Linux
  for (int i = 0; i < kMaxLinks; ++i) {
    std::error_code error;
    const fs::path target = fs::read_symlink(path, error);
    if (error) return path;
    path = path.parent_path() / target;  // an absolute target replaces the whole path
  }
  return {};
}

// Calls `make` with names beside `target` until one is free. What it gave last; its errno stays.
template <class Make>
int with_free_name(const fs::path& target, fs::path& path, const Make& make) {
  std::random_device random;
  int result = -1;
  for (int attempt = 0; attempt < 100; ++attempt) {
    char name[32];
    std::snprintf(name, sizeof name, ".qkvlab-%08x%08x", static_cast<unsigned>(random()),
                  static_cast<unsigned>(random()));
    path = target.parent_path() / name;
    result = make(path);
    if (result >= 0 || errno != EEXIST) break;
  }
  return result;
}

fs::path directory_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

// Where the system shows an open file, so that a name can be given to it.
std::string shown_at(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

struct TemporaryFile {
  int fd = -1;    // negative: `error` says why
  fs::path path;  // empty: it has no name
  int error = 0;
};

TemporaryFile create_beside(const fs::path& target, mode_t mode) {
  TemporaryFile file;
  file.fd = open_again_if_interrupted(directory_of(target), O_WRONLY | O_TMPFILE, mode);
  if (file.fd >= 0 && ::access(shown_at(file.fd).c_str(), F_OK) == 0) return file;
  if (file.fd >= 0) ::close(file.fd);
  file.fd = with_free_name(target, file.path, [&](const fs::path& path) {
    return open_again_if_interrupted(path, O_WRONLY | O_CREAT | O_EXCL, mode);
  });
  file.error = errno;
  return file;
}

// 0 or an errno value.
int give_name(TemporaryFile& file, const fs::path& target) {
  const std::string shown = shown_at(file.fd);
  const int linked = with_free_name(target, file.path, [&](const fs::path& path) {
    return ::linkat(AT_FDCWD, shown.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW);
  });
  return linked == 0 ? 0 : errno;
}

// Makes the rename last through a power cut. Some file systems cannot, and the file is whole either way.
void sync_directory_of(const fs::path& path) {
  const Descriptor opened(open_again_if_interrupted(directory_of(path), O_RDONLY | O_DIRECTORY));
  if (opened.is_open()) ::fsync(opened.get());
}

// A device or a pipe has no content to replace: it takes the bytes as they come.
Status write_to_device(const fs::path& path, std::span<const std::byte> content) {
  Descriptor file(open_again_if_interrupted(path, O_WRONLY));
  if (!file.is_open()) return cannot_write(errno);
  if (const int error = write_all(file.get(), content)) return cannot_write(error);
  if (const int error = file.close()) return cannot_write(error);
  return Done{};
}

// `existing` is what `target` replaces, nullptr for a new file.
Status replace_file(const fs::path& target, const struct stat* existing, std::span<const std::byte> content) {
  // A replacement stays private until it has the permissions of what it replaces; a new file follows the umask.
  TemporaryFile temporary = create_beside(target, existing ? 0600 : 0666);
  if (temporary.fd < 0) return cannot_write(temporary.error);
  Descriptor file(temporary.fd);
  RemoveOnExit cleanup(temporary.path);
  if (const int error = write_all(file.get(), content)) return cannot_write(error);
  if (existing) {
    // Only a privileged user can keep another owner's name on a file, so a refusal is no failure.
    if (::fchown(file.get(), existing->st_uid, existing->st_gid) != 0) errno = 0;
    if (::fchmod(file.get(), existing->st_mode & 07777) != 0) return cannot_write(errno);
  }
  // EINVAL: a file system without sync.
  if (::fsync(file.get()) != 0 && errno != EINVAL) return cannot_write(errno);
  if (temporary.path.empty()) {
    if (const int error = give_name(temporary, target)) return cannot_write(error);
    cleanup.reset(temporary.path);
  }
  if (const int error = file.close()) return cannot_write(error);
  if (::rename(temporary.path.c_str(), target.c_str()) != 0) return cannot_write(errno);
  cleanup.release();
  sync_directory_of(target);
  return Done{};
}

Error too_large(std::size_t max_bytes) {
  return bad_input("the file is larger than the limit of " + std::to_string(max_bytes) + " bytes");
}

}  // namespace

Result<Bytes> read_file(const fs::path& path, std::size_t max_bytes) {
  const Descriptor file(open_again_if_interrupted(path, O_RDONLY));
  if (!file.is_open()) return cannot_read(errno);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return cannot_read(errno);
  if (S_ISDIR(info.st_mode)) return cannot_read(EISDIR);
  if (info.st_size > 0 && static_cast<std::uintmax_t>(info.st_size) > max_bytes) return too_large(max_bytes);

  // The size is a hint: a pipe says 0, and another program may be writing the file.
  constexpr std::size_t kChunk = std::size_t{1} << 16;
  Bytes bytes(static_cast<std::size_t>(info.st_size) + 1);
  std::size_t used = 0;
  while (true) {
    if (used == bytes.size()) bytes.resize(used + std::max(kChunk, used / 2));
    const ssize_t got = ::read(file.get(), bytes.data() + used, bytes.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot_read(errno);
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
    if (used > max_bytes) return too_large(max_bytes);
  }
  bytes.resize(used);
  return bytes;
}

Status write_file_atomically(const fs::path& path, std::span<const std::byte> content) {
  struct stat info {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return cannot_write(EISDIR);
  if (exists && !S_ISREG(info.st_mode)) return write_to_device(path, content);
  // A rename would get around the file's own permissions.
  if (exists && ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) return cannot_write(errno);

  const fs::path target = follow_links(path);
  if (target.empty()) return cannot_write(ELOOP);
  return replace_file(target, exists ? &info : nullptr, content);
}

Status write_file_atomically(const fs::path& path, std::string_view content) {
  return write_file_atomically(path, as_bytes(content));
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace qkv
