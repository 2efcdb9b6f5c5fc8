// A zip archive in memory, read by its central directory. Names are only names: nothing is ever unpacked to disk, so
// an entry called "../x" or "/etc/x" is as harmless as any other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/base/file.h"
#include "core/base/read_progress.h"
#include "core/base/result.h"

struct zip;

namespace qkv {

// What the directory says of an entry.
struct ZipEntry {
  std::string name;            // on one line: control characters are "?"
  std::uint64_t bytes = 0;     // unpacked
  bool is_stored = false;      // not compressed
  std::optional<Error> error;  // why it cannot be read: encrypted, a method that is not read, a size it cannot have
};

// Move-only; one thread at a time. The bytes must outlive it.
class ZipArchive {
 public:
  // kBadInput where there is no whole central directory.
  static Result<ZipArchive> open(std::span<const std::byte> bytes);

  std::uint64_t size() const;
  ZipEntry entry(std::uint64_t index) const;

  // The first bytes of an entry that has no error, `count` of them or all that there are; no checksum is compared.
  Result<Bytes> head(std::uint64_t index, std::uint64_t count) const;
  // `count` bytes from `begin` on, which the entry must declare. It is read to its end and its checksum compared,
  // holding no more than the part; of an entry that is not compressed, kPartAlone reads only the part. kBadInput for
  // damaged data and data longer or shorter than declared. Every byte that is unpacked counts as read.
  enum class Check { kChecksum, kPartAlone };
  Result<Bytes> part(std::uint64_t index, std::uint64_t begin, std::uint64_t count, Check check,
                     ReadProgress* progress = nullptr) const;

 private:
  struct Closer {
    void operator()(zip* archive) const;
  };
  ZipArchive(std::unique_ptr<zip, Closer> archive, std::uint64_t bytes) : archive_(std::move(archive)), bytes_(bytes) {}

  std::unique_ptr<zip, Closer> archive_;
  std::uint64_t bytes_ = 0;  // of the archive
};

}  // namespace qkv
