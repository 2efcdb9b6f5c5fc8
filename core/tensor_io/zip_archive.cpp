#include "core/tensor_io/zip_archive.h"

#include <zip.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/tensor_io/name_text.h"

namespace qkv {

namespace {

// Of a compressed entry: a few megabytes can unpack to that much.
constexpr std::uint64_t kMaxUnpackedBytes = std::uint64_t{4} << 30;
// Deflate turns at most 1032 bytes into one; what declares more is no array.
constexpr std::uint64_t kMaxDeflateRatio = 1032;

struct EntryDeleter {
  void operator()(zip_file_t* entry) const { zip_fclose(entry); }
};
using EntryPtr = std::unique_ptr<zip_file_t, EntryDeleter>;

Error not_an_archive(zip_error_t& error, const char* advice) {
  Error result = bad_input(std::string("not a readable zip archive: ") + zip_error_strerror(&error) + advice);
  zip_error_fini(&error);
  return result;
}

// What is wrong with an entry, as far as the directory tells.
std::optional<Error> entry_error(const zip_stat_t& stat, std::uint64_t archive_bytes) {
  if (stat.encryption_method != ZIP_EM_NONE) {
    return unsupported("encrypted entries are not read: save the file without a password");
  }
  if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE) {
    return unsupported("zip compression method " + std::to_string(stat.comp_method) +
                       " is not read: use np.savez or np.savez_compressed");
  }
  const bool stored = stat.comp_method == ZIP_CM_STORE;
  const std::string declared = "it declares " + std::to_string(stat.size) + " bytes";
  if (stat.comp_size > archive_bytes) {
    return bad_input("it claims " + std::to_string(stat.comp_size) + " bytes of an archive of " +
                     std::to_string(archive_bytes) + ": the file may be cut short");
  }
  if (stat.comp_size < stat.size / (stored ? 1 : kMaxDeflateRatio)) {
    return bad_input(declared + ", more than its " + std::to_string(stat.comp_size) + " compressed bytes can hold");
  }
  if (stored && stat.comp_size != stat.size) {
    return bad_input(declared + " but holds " + std::to_string(stat.comp_size) + ", and is not compressed");
  }
  if (!stored && stat.size > kMaxUnpackedBytes) {
    return unsupported(declared + ": compressed arrays above 4 GiB are not read; save it with np.savez");
  }
  return std::nullopt;
}

Error damaged(zip_file_t* entry) {
  return bad_input(std::string("its bytes are damaged: ") + zip_file_strerror(entry));
}

// Up to out.size() bytes; fewer only at the end.
Result<std::size_t> read_some(zip_file_t* entry, std::span<std::byte> out) {
  std::size_t used = 0;
  while (used < out.size()) {
    const zip_int64_t got = zip_fread(entry, out.data() + used, out.size() - used);
    if (got < 0) return damaged(entry);
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  return used;
}

Status read_exactly(zip_file_t* entry, std::span<std::byte> out) {
  const Result<std::size_t> got = read_some(entry, out);
  if (!got.ok()) return got.error();
  if (got.value() < out.size()) return bad_input("its bytes end early");
  return Done{};
}

// Unpacks `count` bytes to nowhere.
Status skip(zip_file_t* entry, std::uint64_t count, ReadProgress* progress) {
  std::array<std::byte, 1 << 14> unused;
  while (count > 0) {
    const std::size_t step = static_cast<std::size_t>(std::min<std::uint64_t>(count, unused.size()));
    if (const Status status = read_exactly(entry, std::span(unused).first(step)); !status.ok()) return status;
    if (const Status on = count_read(progress, step); !on.ok()) return on;
    count -= step;
  }
  return Done{};
}

// Unpacks `count` bytes behind `bytes`, a step at a time: memory that is cleared just before it is filled is in the
// processor's cache.
Status unpack(zip_file_t* entry, std::uint64_t count, Bytes& bytes, ReadProgress* progress) {
  bytes.reserve(bytes.size() + static_cast<std::size_t>(count));
  while (count > 0) {
    const std::size_t step = static_cast<std::size_t>(std::min(count, kReadStep));
    bytes.resize(bytes.size() + step);
    if (const Status status = read_exactly(entry, std::span(bytes).last(step)); !status.ok()) return status;
    if (const Status on = count_read(progress, step); !on.ok()) return on;
    count -= step;
  }
  return Done{};
}

// Past the last declared byte: libzip compares the checksum when it meets the end.
Status check_end(zip_file_t* entry) {
  std::byte beyond;
  const Result<std::size_t> got = read_some(entry, std::span(&beyond, 1));
  if (!got.ok()) return got.error();
  if (got.value() > 0) return bad_input("it holds more bytes than it declares");
  return Done{};
}

Result<EntryPtr> open_entry(zip_t* archive, std::uint64_t index) {
  EntryPtr entry(zip_fopen_index(archive, index, 0));
  if (!entry) return bad_input(std::string("it cannot be opened: ") + zip_strerror(archive));
  return entry;
}

}  // namespace

void ZipArchive::Closer::operator()(zip* archive) const { zip_discard(archive); }

Result<ZipArchive> ZipArchive::open(std::span<const std::byte> bytes) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* const source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  if (source == nullptr) return not_an_archive(error, "");
  zip_t* const archive = zip_open_from_source(source, ZIP_RDONLY, &error);
  if (archive == nullptr) {
    zip_source_free(source);
    return not_an_archive(error, "; the file may be cut short");
  }
  zip_error_fini(&error);
  return ZipArchive(std::unique_ptr<zip, Closer>(archive), bytes.size());
}

std::uint64_t ZipArchive::size() const {
  return static_cast<std::uint64_t>(std::max<zip_int64_t>(zip_get_num_entries(archive_.get(), 0), 0));
}

ZipEntry ZipArchive::entry(std::uint64_t index) const {
  ZipEntry entry;
  const char* const name = zip_get_name(archive_.get(), index, ZIP_FL_ENC_GUESS);
  entry.name = printable_name(name == nullptr ? "?" : name);
  zip_stat_t stat;
  zip_stat_init(&stat);
  constexpr zip_uint64_t kNeeded =
      ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  if (zip_stat_index(archive_.get(), index, 0, &stat) != 0 || (stat.valid & kNeeded) != kNeeded) {
    entry.error = bad_input("the zip directory does not describe it");
    return entry;
  }
  entry.bytes = stat.size;
  entry.is_stored = stat.comp_method == ZIP_CM_STORE;
  entry.error = entry_error(stat, bytes_);
  return entry;
}

Result<Bytes> ZipArchive::head(std::uint64_t index, std::uint64_t count) const {
  const Result<EntryPtr> opened = open_entry(archive_.get(), index);
  if (!opened.ok()) return opened.error();
  Bytes bytes(static_cast<std::size_t>(count));
  const Result<std::size_t> got = read_some(opened.value().get(), bytes);
  if (!got.ok()) return got.error();
  bytes.resize(got.value());
  return bytes;
}

Result<Bytes> ZipArchive::part(std::uint64_t index, std::uint64_t begin, std::uint64_t count, Check check,
                               ReadProgress* progress) const {
  const ZipEntry described = entry(index);
  if (described.error) return *described.error;
  const Result<EntryPtr> opened = open_entry(archive_.get(), index);
  if (!opened.ok()) return opened.error();
  zip_file_t* const content = opened.value().get();

  const bool seeks = described.is_stored && check == Check::kPartAlone &&
                     zip_fseek(content, static_cast<zip_int64_t>(begin), SEEK_SET) == 0;
  Status status = seeks ? Status(Done{}) : skip(content, begin, progress);
  if (!status.ok()) return status.error();
  Bytes bytes;
  status = unpack(content, count, bytes, progress);
  if (status.ok() && !seeks) status = skip(content, described.bytes - begin - count, progress);
  if (status.ok() && !seeks) status = check_end(content);
  if (!status.ok()) return status.error();
  return bytes;
}

}  // namespace qkv
