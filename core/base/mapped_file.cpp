#include "core/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace qkv {

namespace {

Error cannot_read(int error) {
  return {ErrorCode::kCannotRead, std::error_code(error, std::generic_category()).message()};
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  struct stat info {};
  const bool large =
      ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size >= static_cast<off_t>(kMappedFrom);
  if (!large) {
    Result<Bytes> bytes = read_file(path);
    if (!bytes.ok()) return bytes.error();
    return MappedFile(std::move(bytes).value());
  }
  MappedFile file;
  do {
    file.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  } while (file.fd_ < 0 && errno == EINTR);
  if (file.fd_ < 0 || ::fstat(file.fd_, &info) != 0) return cannot_read(errno);
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) return file;  // it was emptied a moment ago
  void* const start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd_, 0);
  if (start == MAP_FAILED) return cannot_read(errno);
  file.mapped_ = static_cast<const std::byte*>(start);
  file.mapped_bytes_ = size;
  return file;
}

MappedFile::~MappedFile() {
  if (mapped_ != nullptr) ::munmap(const_cast<std::byte*>(mapped_), mapped_bytes_);
  if (fd_ >= 0) ::close(fd_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : owned_(std::move(other.owned_)),
      mapped_(std::exchange(other.mapped_, nullptr)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)),
      fd_(std::exchange(other.fd_, -1)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(owned_, other.owned_);
  std::swap(mapped_, other.mapped_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(fd_, other.fd_);
  return *this;
}

std::span<const std::byte> MappedFile::bytes() const {
  if (mapped_ != nullptr) return {mapped_, mapped_bytes_};
  return owned_;
}

Status MappedFile::check_length() const {
  if (mapped_ == nullptr) return Done{};
  struct stat info {};
  if (::fstat(fd_, &info) != 0) return cannot_read(errno);
  if (static_cast<std::size_t>(info.st_size) == mapped_bytes_) return Done{};
  return Error{ErrorCode::kCannotRead, "the file has another length than when it was opened: open it again"};
}

}  // namespace qkv
