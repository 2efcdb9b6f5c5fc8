// Whole files as bytes: read with a size limit, written completely or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace qkv {

using Bytes = std::vector<std::byte>;

// Reads `path` whole. Errors: kCannotRead with the system's reason; kBadInput above `max_bytes`.
// The message does not repeat the path: the caller knows it.
Result<Bytes> read_file(const std::filesystem::path& path, std::size_t max_bytes = std::size_t{4} << 30);

// Writes a temporary file beside `path`, syncs it to disk, and renames it over `path`, so that a
// reader sees the old content or the new and a failure leaves nothing behind. Where the file system can (most do), the
// file has no name while it is written: nothing is left of it even if the program is ended then. An existing file
// keeps its permissions, and is not replaced if it may not be written; a symbolic link keeps pointing
// where it did; a device or pipe takes the bytes as they come. Errors: kCannotWrite.
Status write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> content);
Status write_file_atomically(const std::filesystem::path& path, std::string_view content);

std::string_view as_text(std::span<const std::byte> bytes);
std::span<const std::byte> as_bytes(std::string_view text);

}  // namespace qkv
