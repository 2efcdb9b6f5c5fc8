// The bytes of an opened file: a large one is mapped into memory, so that only what is looked at is read from disk.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "core/base/file.h"
#include "core/base/result.h"

namespace qkv {

// Move-only; the bytes stay where they are when it moves.
class MappedFile {
 public:
  // Smaller files are read whole: that costs less than a map, and what happens to them later no longer matters.
  static constexpr std::size_t kMappedFrom = std::size_t{1} << 20;

  MappedFile() = default;  // no bytes
  explicit MappedFile(Bytes bytes) : owned_(std::move(bytes)) {}
  // Errors: kCannotRead with the system's reason. A pipe or a device is read to its end. The message does not repeat
  // the path: the caller knows it.
  static Result<MappedFile> open(const std::filesystem::path& path);

  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const;
  // kCannotRead where another program has changed the length of a mapped file: its map no longer tells what the file
  // holds, and looking beyond the end of a shorter one would end this program.
  Status check_length() const;

 private:
  Bytes owned_;
  const std::byte* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  int fd_ = -1;  // of the mapped file
};

}  // namespace qkv
