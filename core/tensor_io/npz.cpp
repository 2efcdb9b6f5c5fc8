#include "core/tensor_io/npz.h"

#include <zip.h>

#include <cstdint>
#include <memory>
#include <type_traits>

namespace qkv {

namespace {

constexpr zip_uint16_t kDosDate1980 = (1 << 5) | 1;  // the first day that a zip file can name

struct ArchiveDeleter {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct SourceDeleter {
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
using ArchivePtr = std::unique_ptr<zip_t, ArchiveDeleter>;
using SourcePtr = std::unique_ptr<zip_source_t, SourceDeleter>;

// A libzip error that frees its text.
class ZipError {
 public:
  ZipError() { zip_error_init(&error_); }
  ~ZipError() { zip_error_fini(&error_); }
  ZipError(const ZipError&) = delete;
  ZipError& operator=(const ZipError&) = delete;
  zip_error_t* get() { return &error_; }
  std::string text() { return zip_error_strerror(&error_); }

 private:
  zip_error_t error_;
};

constexpr ElementType type_of(float) { return ElementType::kFloat32; }
constexpr ElementType type_of(double) { return ElementType::kFloat64; }
constexpr ElementType type_of(std::uint8_t) { return ElementType::kUint8; }

// The content of one entry: the header of an array, and its elements where they are. Both must live until the archive
// is closed, which reads them.
struct EntryContent {
  Bytes header;
  std::span<const std::byte> elements;
};

EntryContent content_of(const NamedArray& array) {
  return std::visit(
      [&](const auto& values) {
        using Value = typename std::decay_t<decltype(values)>::value_type;
        return EntryContent{npy_header(array.shape, type_of(Value())), std::as_bytes(std::span(values))};
      },
      array.values);
}

// Adds one stored entry.
Status add_entry(zip_t* archive, const std::string& name, const EntryContent& content) {
  const auto failed = [&] { return bad_input("array \"" + name + "\" cannot be added: " + zip_strerror(archive)); };
  // Not const in libzip, which only reads them.
  const auto fragment = [](std::span<const std::byte> bytes) {
    return zip_buffer_fragment_t{reinterpret_cast<zip_uint8_t*>(const_cast<std::byte*>(bytes.data())), bytes.size()};
  };
  const zip_buffer_fragment_t fragments[] = {fragment(content.header), fragment(content.elements)};
  SourcePtr source(zip_source_buffer_fragment(archive, fragments, content.elements.empty() ? 1 : 2, 0));
  if (!source) return failed();
  const zip_int64_t index = zip_file_add(archive, (name + ".npy").c_str(), source.get(), ZIP_FL_ENC_UTF_8);
  if (index < 0) return failed();
  static_cast<void>(source.release());  // the archive owns it now
  const auto entry = static_cast<zip_uint64_t>(index);
  if (zip_set_file_compression(archive, entry, ZIP_CM_STORE, 0) != 0) return failed();
  if (zip_file_set_dostime(archive, entry, 0, kDosDate1980, 0) != 0) return failed();
  return Done{};
}

// Everything that was written to a source.
Result<Bytes> source_bytes(zip_source_t* source) {
  const auto failed = [&] {
    return bad_input(std::string("the archive cannot be built: ") + zip_error_strerror(zip_source_error(source)));
  };
  zip_stat_t stat;
  zip_stat_init(&stat);
  if (zip_source_stat(source, &stat) != 0 || (stat.valid & ZIP_STAT_SIZE) == 0) return failed();
  Bytes bytes(static_cast<std::size_t>(stat.size));
  if (zip_source_open(source) != 0) return failed();
  const zip_int64_t got = zip_source_read(source, bytes.data(), bytes.size());
  zip_source_close(source);
  if (got < 0 || static_cast<std::size_t>(got) != bytes.size()) return failed();
  return bytes;
}

}  // namespace

bool looks_like_npz(std::span<const std::byte> head) {
  const std::string_view text = as_text(head);
  return text.starts_with("PK\x03\x04") || text.starts_with("PK\x05\x06");  // an entry, or an archive without any
}

bool looks_like_npy(std::span<const std::byte> head) { return as_text(head).starts_with("\x93NUMPY"); }

Result<Bytes> npz_bytes(const std::vector<NamedArray>& arrays) {
  if (arrays.empty()) return bad_input("there are no arrays to write");
  ZipError error;
  SourcePtr target(zip_source_buffer_create(nullptr, 0, 0, error.get()));
  if (!target) return bad_input("the archive cannot be built: " + error.text());
  ArchivePtr archive(zip_open_from_source(target.get(), ZIP_CREATE | ZIP_TRUNCATE, error.get()));
  if (!archive) return bad_input("the archive cannot be built: " + error.text());
  zip_source_keep(target.get());  // one reference for the archive, one to read the result from

  std::vector<EntryContent> contents;  // read by zip_close
  contents.reserve(arrays.size());
  for (const NamedArray& array : arrays) {
    contents.push_back(content_of(array));
    const Status status = add_entry(archive.get(), array.name, contents.back());
    if (!status.ok()) return status.error();
  }
  if (zip_close(archive.get()) != 0) {
    return bad_input(std::string("the archive cannot be built: ") + zip_strerror(archive.get()));
  }
  static_cast<void>(archive.release());  // zip_close freed it
  return source_bytes(target.get());
}

}  // namespace qkv
