#include "core/tensor_io/npz.h"

#include <zip.h>

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <set>

namespace qkv {

namespace {

constexpr std::uint64_t kMaxArrayBytes = std::uint64_t{4} << 30;
// Deflate turns at most 1032 bytes into one; what declares more is no array.
constexpr std::uint64_t kMaxDeflateRatio = 1032;
constexpr zip_uint16_t kDosDate1980 = (1 << 5) | 1;  // the first day that a zip file can name

struct ArchiveDeleter {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct EntryDeleter {
  void operator()(zip_file_t* entry) const { zip_fclose(entry); }
};
struct SourceDeleter {
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
using ArchivePtr = std::unique_ptr<zip_t, ArchiveDeleter>;
using EntryPtr = std::unique_ptr<zip_file_t, EntryDeleter>;
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

// The bytes must outlive the archive.
Result<ArchivePtr> open_archive(std::span<const std::byte> bytes) {
  ZipError error;
  SourcePtr source(zip_source_buffer_create(bytes.data(), bytes.size(), 0, error.get()));
  if (!source) return bad_input("not a readable zip archive: " + error.text());
  ArchivePtr archive(zip_open_from_source(source.get(), ZIP_RDONLY, error.get()));
  if (!archive) return bad_input("not a readable zip archive: " + error.text() + "; the file may be cut short");
  static_cast<void>(source.release());  // the archive owns it now
  return archive;
}

// What the directory says about an entry, after every check that does not read it.
Result<zip_stat_t> check_entry(zip_t* archive, zip_uint64_t index) {
  zip_stat_t stat;
  zip_stat_init(&stat);
  constexpr zip_uint64_t kNeeded =
      ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  if (zip_stat_index(archive, index, 0, &stat) != 0 || (stat.valid & kNeeded) != kNeeded) {
    return bad_input("the zip directory does not describe it");
  }
  if (!std::string_view(stat.name).ends_with(".npy")) {
    return unsupported("not an array: its name does not end in .npy");
  }
  if (stat.encryption_method != ZIP_EM_NONE) {
    return unsupported("encrypted entries are not read: save the file without a password");
  }
  if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE) {
    return unsupported("zip compression method " + std::to_string(stat.comp_method) +
                       " is not read: use np.savez or np.savez_compressed");
  }
  if (stat.size > kMaxArrayBytes) {
    return unsupported("arrays above 4 GiB are not read: it has " + std::to_string(stat.size) + " bytes");
  }
  const std::uint64_t ratio = stat.comp_method == ZIP_CM_STORE ? 1 : kMaxDeflateRatio;
  if (stat.comp_size < stat.size / ratio) {
    return bad_input("it declares " + std::to_string(stat.size) + " bytes, more than its " +
                     std::to_string(stat.comp_size) + " compressed bytes can hold");
  }
  return stat;
}

Result<EntryPtr> open_entry(zip_t* archive, zip_uint64_t index) {
  EntryPtr entry(zip_fopen_index(archive, index, 0));
  if (!entry) return bad_input(std::string("it cannot be opened: ") + zip_strerror(archive));
  return entry;
}

// Exactly out.size() bytes, or an error.
Status read_exactly(zip_file_t* entry, std::span<std::byte> out) {
  while (!out.empty()) {
    const zip_int64_t got = zip_fread(entry, out.data(), out.size());
    if (got < 0) return bad_input(std::string("its bytes are damaged: ") + zip_file_strerror(entry));
    if (got == 0) return bad_input("its bytes end early");
    out = out.subspan(static_cast<std::size_t>(got));
  }
  return Done{};
}

// The npy header at the start of an entry of `size` bytes; reads no further than that.
Result<NpyHeader> read_header(zip_t* archive, zip_uint64_t index, std::uint64_t size) {
  Result<EntryPtr> entry = open_entry(archive, index);
  if (!entry.ok()) return entry.error();
  Bytes head(static_cast<std::size_t>(std::min<std::uint64_t>(size, 12)));
  Status status = read_exactly(entry.value().get(), head);
  if (!status.ok()) return status.error();
  const std::size_t start = head.size();
  const std::size_t end = static_cast<std::size_t>(std::min<std::uint64_t>(size, npy_data_offset(head)));
  if (end > start) {
    head.resize(end);
    status = read_exactly(entry.value().get(), std::span(head).subspan(start));
    if (!status.ok()) return status.error();
  }
  return parse_npy_header(head, size);
}

// A name fit for one line of text: control characters become "?".
std::string printable(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return out;
}

ArrayInfo describe_entry(zip_t* archive, zip_uint64_t index) {
  ArrayInfo info;
  const char* name = zip_get_name(archive, index, ZIP_FL_ENC_GUESS);
  info.name = printable(name == nullptr ? "?" : name);
  if (info.name.ends_with(".npy")) info.name.resize(info.name.size() - 4);
  const Result<zip_stat_t> stat = check_entry(archive, index);
  if (!stat.ok()) {
    info.problem = stat.error().message;
    return info;
  }
  info.bytes = stat.value().size;
  Result<NpyHeader> header = read_header(archive, index, info.bytes);
  if (!header.ok()) {
    info.problem = header.error().message;
    return info;
  }
  info.header = std::move(header).value();
  info.problem = unreadable_reason(info.header);
  return info;
}

Error with_name(std::string_view name, Error error) {
  error.message.insert(0, "array \"" + std::string(name) + "\": ");
  return error;
}

// Adds one stored entry; `content` must live until the archive is closed.
Status add_entry(zip_t* archive, const std::string& name, const Bytes& content) {
  const auto failed = [&] { return bad_input("array \"" + name + "\" cannot be added: " + zip_strerror(archive)); };
  SourcePtr source(zip_source_buffer(archive, content.data(), content.size(), 0));
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

Result<NpzFile> NpzFile::open(const std::filesystem::path& path) {
  Result<Bytes> bytes = read_file(path);
  if (!bytes.ok()) return bytes.error();
  return from_bytes(std::move(bytes).value(), path.stem().string());
}

Result<NpzFile> NpzFile::from_bytes(Bytes bytes, std::string npy_name) {
  NpzFile file;
  file.bytes_ = std::move(bytes);
  if (looks_like_npy(file.bytes_)) {
    Result<NpyHeader> header = parse_npy_header(file.bytes_, file.bytes_.size());
    if (!header.ok()) return header.error();
    std::string problem = unreadable_reason(header.value());
    file.arrays_.push_back({std::move(npy_name), std::move(header).value(), file.bytes_.size(), std::move(problem)});
    return file;
  }
  if (!looks_like_npz(file.bytes_)) {
    return bad_input("neither .npz nor .npy: the file starts with neither a zip entry nor \\x93NUMPY");
  }
  file.is_zip_ = true;
  const Result<ArchivePtr> archive = open_archive(file.bytes_);
  if (!archive.ok()) return archive.error();
  const zip_int64_t count = zip_get_num_entries(archive.value().get(), 0);
  std::set<std::string> names;
  for (zip_int64_t i = 0; i < count; ++i) {
    ArrayInfo info = describe_entry(archive.value().get(), static_cast<zip_uint64_t>(i));
    if (!names.insert(info.name).second) return bad_input("two entries of the archive are named \"" + info.name + "\"");
    file.arrays_.push_back(std::move(info));
  }
  return file;
}

const ArrayInfo* NpzFile::find(std::string_view name) const {
  const auto found = std::ranges::find(arrays_, name, &ArrayInfo::name);
  return found == arrays_.end() ? nullptr : &*found;
}

// The whole content of an entry, its checksum verified.
Result<Bytes> NpzFile::entry_bytes(std::string_view name) const {
  const auto index = static_cast<zip_uint64_t>(find(name) - arrays_.data());  // arrays_ lists every entry in order
  const Result<ArchivePtr> archive = open_archive(bytes_);
  if (!archive.ok()) return archive.error();
  const Result<zip_stat_t> stat = check_entry(archive.value().get(), index);
  if (!stat.ok()) return stat.error();
  const Result<EntryPtr> entry = open_entry(archive.value().get(), index);
  if (!entry.ok()) return entry.error();
  Bytes content;
  try {
    content.resize(static_cast<std::size_t>(stat.value().size));
  } catch (const std::bad_alloc&) {
    return bad_input("there is not enough memory for its " + std::to_string(stat.value().size) + " bytes");
  }
  const Status status = read_exactly(entry.value().get(), content);
  if (!status.ok()) return status.error();
  std::byte beyond;  // libzip compares the checksum when it meets the end
  const zip_int64_t got = zip_fread(entry.value().get(), &beyond, 1);
  if (got > 0) return bad_input("it holds more bytes than it declares");
  if (got < 0) return bad_input(std::string("its bytes are damaged: ") + zip_file_strerror(entry.value().get()));
  return content;
}

namespace {

// Runs `parse` on the bytes of an array, naming the array in errors.
template <class TensorType, class Fetch>
Result<TensorType> read_named(const NpzFile& file, std::string_view name,
                              Result<TensorType> (*parse)(std::span<const std::byte>), Fetch fetch) {
  const ArrayInfo* info = file.find(name);
  if (info == nullptr) return bad_input("there is no array \"" + std::string(name) + "\"");
  // A header that was read tells what is unreadable without unpacking the data.
  if (!info->header.descr.empty() && !info->problem.empty()) return with_name(name, unsupported(info->problem));
  const auto bytes = fetch();
  if (!bytes.ok()) return with_name(name, bytes.error());
  Result<TensorType> tensor = parse(bytes.value());
  if (!tensor.ok()) return with_name(name, tensor.error());
  return tensor;
}

}  // namespace

Result<Tensor> NpzFile::read(std::string_view name) const {
  if (!is_zip_) return read_named<Tensor>(*this, name, parse_npy, [&] { return Result(std::span(bytes_)); });
  return read_named<Tensor>(*this, name, parse_npy, [&] { return entry_bytes(name); });
}

Result<Tensor64> NpzFile::read_float64(std::string_view name) const {
  if (!is_zip_) {
    return read_named<Tensor64>(*this, name, parse_npy_float64, [&] { return Result(std::span(bytes_)); });
  }
  return read_named<Tensor64>(*this, name, parse_npy_float64, [&] { return entry_bytes(name); });
}

Result<Bytes> npz_bytes(const std::vector<NamedArray>& arrays) {
  if (arrays.empty()) return bad_input("there are no arrays to write");
  ZipError error;
  SourcePtr target(zip_source_buffer_create(nullptr, 0, 0, error.get()));
  if (!target) return bad_input("the archive cannot be built: " + error.text());
  ArchivePtr archive(zip_open_from_source(target.get(), ZIP_CREATE | ZIP_TRUNCATE, error.get()));
  if (!archive) return bad_input("the archive cannot be built: " + error.text());
  zip_source_keep(target.get());  // one reference for the archive, one to read the result from

  std::vector<Bytes> contents;  // read by zip_close
  contents.reserve(arrays.size());
  for (const NamedArray& array : arrays) {
    contents.push_back(std::visit([&](const auto& values) { return npy_bytes(array.shape, values); }, array.values));
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
