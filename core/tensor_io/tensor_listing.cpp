#include "core/tensor_io/tensor_listing.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "core/base/file.h"
#include "core/base/utf8.h"
#include "core/tensor_io/name_text.h"
#include "core/tensor_io/npz.h"
#include "core/tensor_io/safetensors.h"
#include "core/tensor_io/zip_archive.h"

namespace qkv {

namespace {

constexpr std::string_view kNpyEnding = ".npy";
constexpr std::size_t kNpyLengthEnd = 12;  // bytes that tell where the header of an array ends

void add(TensorListing& listing, TensorInfo info, StoredTensor stored) {
  if (stored.error) info.problem = stored.error->message;
  info.is_text = !stored.error && stored.element.type == ElementType::kText;
  listing.infos.push_back(std::move(info));
  listing.stored.push_back(std::move(stored));
}

// An array whose header was read; `stored` says where its bytes begin.
void add_npy(TensorListing& listing, std::string name, const NpyHeader& header, StoredTensor stored) {
  stored.fortran_order = header.fortran_order;
  stored.offset += header.data_offset;
  if (header.element) {
    stored.element = *header.element;
  } else {
    stored.error = unsupported(unreadable_reason(header));
  }
  std::string dtype = header.element ? std::string(dtype_name(header.element->type)) : printable_name(header.descr);
  add(listing, {std::move(name), std::move(dtype), header.shape, header.count * header.item_bytes, {}, false},
      std::move(stored));
}

Result<TensorListing> list_npy(std::span<const std::byte> file, const std::string& stem) {
  const Result<NpyHeader> header = parse_npy_header(file, file.size());
  if (!header.ok()) return header.error();
  TensorListing listing;
  add_npy(listing, stem, header.value(), {});
  return listing;
}

// The header of the array in an entry, reading no further than that.
Result<NpyHeader> entry_header(const ZipArchive& archive, std::uint64_t index, std::uint64_t bytes) {
  Result<Bytes> head = archive.head(index, std::min<std::uint64_t>(bytes, kNpyLengthEnd));
  if (!head.ok()) return head.error();
  const std::uint64_t end = std::min<std::uint64_t>(bytes, npy_data_offset(head.value()));
  if (end > head.value().size()) head = archive.head(index, end);
  if (!head.ok()) return head.error();
  return parse_npy_header(head.value(), bytes);
}

void add_entry(TensorListing& listing, const ZipArchive& archive, std::uint64_t index) {
  ZipEntry entry = archive.entry(index);
  TensorInfo info;
  info.name = entry.name;
  info.bytes = entry.bytes;
  StoredTensor stored;
  stored.place = StoredTensor::Place::kEntry;
  stored.entry = index;
  stored.deflated = !entry.is_stored;
  stored.error = entry.error;
  const bool is_array = entry.name.ends_with(kNpyEnding);
  if (is_array) info.name.resize(info.name.size() - kNpyEnding.size());
  if (!is_array) stored.error = unsupported("not an array: its name does not end in .npy");
  if (!stored.error) {
    const Result<NpyHeader> header = entry_header(archive, index, entry.bytes);
    if (header.ok()) return add_npy(listing, std::move(info.name), header.value(), std::move(stored));
    stored.error = header.error();
  }
  add(listing, std::move(info), std::move(stored));
}

Result<TensorListing> list_npz(std::span<const std::byte> file) {
  const Result<ZipArchive> archive = ZipArchive::open(file);
  if (!archive.ok()) return archive.error();
  TensorListing listing;
  std::unordered_set<std::string> names;
  for (std::uint64_t i = 0; i < archive.value().size(); ++i) {
    add_entry(listing, archive.value(), i);
    const std::string& name = listing.infos.back().name;
    if (!names.insert(name).second) return bad_input("two entries of the archive are named " + quoted_name(name));
    if (name.ends_with("/data.pkl")) {
      return unsupported(
          "PyTorch checkpoints are pickled Python objects, which are never read: save the tensors with "
          "safetensors.torch.save_file or np.savez");
    }
  }
  return listing;
}

Result<TensorListing> list_safetensors(std::span<const std::byte> file) {
  Result<std::vector<SafetensorsEntry>> entries = parse_safetensors(file);
  if (!entries.ok()) return entries.error();
  TensorListing listing;
  for (SafetensorsEntry& entry : entries.value()) {
    StoredTensor stored;
    stored.offset = entry.begin;
    if (entry.element) stored.element = *entry.element;
    if (!entry.element)
      stored.error = unsupported("dtype " + printable_name(entry.dtype) + " is not read: save it as F32");
    std::string dtype = entry.element ? std::string(dtype_name(entry.element->type)) : printable_name(entry.dtype);
    add(listing, {std::move(entry.name), std::move(dtype), std::move(entry.shape), entry.end - entry.begin, {}, false},
        std::move(stored));
  }
  return listing;
}

void add_names(TensorListing& listing, const std::string& name, const std::vector<std::string>& names,
               StoredTensor::Place place) {
  if (names.empty()) return;
  std::uint64_t bytes = 0;
  for (const std::string& text : names) bytes += text.size();
  StoredTensor stored;
  stored.place = place;
  stored.element = {ElementType::kText, 0, false};
  add(listing, {name, std::string(dtype_name(ElementType::kText)), {names.size()}, bytes, {}, false},
      std::move(stored));
}

Result<TensorListing> list_table(std::string_view text, const std::string& stem, ReadProgress* progress) {
  Result<Table> table = parse_table(text, progress);
  if (!table.ok()) return table.error();
  TensorListing listing;
  listing.table = std::move(table).value();
  StoredTensor stored;
  stored.place = StoredTensor::Place::kTable;
  stored.element = {ElementType::kFloat64, sizeof(double), false};
  add(listing,
      {stem,
       std::string(dtype_name(ElementType::kFloat64)),
       {listing.table.rows, listing.table.columns},
       listing.table.values.size() * sizeof(double),
       {},
       false},
      std::move(stored));
  add_names(listing, stem + ".columns", listing.table.column_names, StoredTensor::Place::kColumns);
  add_names(listing, stem + ".rows", listing.table.row_names, StoredTensor::Place::kRows);
  return listing;
}

// What a file that holds no tensors seems to be; nothing where it may be a table.
std::optional<Error> other_kind(std::string_view bytes) {
  const std::string accepted = ": " + std::string(kAcceptedFiles);
  const std::string_view text = without_byte_order_mark(bytes);
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return bad_input("the file is empty" + accepted);
  const bool long_enough = bytes.size() > 9;
  if (text[start] == '{') return bad_input("the file is a JSON object, not tensors" + accepted);
  if (text[start] == '[') return bad_input("the file is a JSON array" + accepted);
  if (bytes.starts_with("\x89HDF")) return unsupported("HDF5 files are not read" + accepted);
  if (bytes.starts_with("\x80") && long_enough) return unsupported("pickled Python objects are never read" + accepted);
  if (bytes.starts_with("\x1f\x8b")) return unsupported("gzip files are not read: unpack it first" + accepted);
  const std::string_view head = bytes.substr(0, 4096);
  std::size_t whole = head.size();  // without a character that the 4096 bytes cut
  while (whole > 0 && head.size() - whole < 3 && (static_cast<unsigned char>(head[whole - 1]) & 0xc0) == 0x80) --whole;
  const bool is_text =
      head.find('\0') == std::string_view::npos &&
      (is_valid_utf8(head) || (head.size() < bytes.size() && whole > 0 && is_valid_utf8(head.substr(0, whole - 1))));
  if (!is_text) return bad_input("the file is of an unknown kind" + accepted);
  // A table has a digit or, if all its numbers are nan or infinite, a separator; other text is none.
  if (bytes.find_first_of("0123456789") == std::string_view::npos &&
      bytes.find_first_of(",;\t") == std::string_view::npos) {
    return bad_input("the file is plain text" + accepted);
  }
  return std::nullopt;
}

Status read_as_bfloat16(TensorListing& listing, const std::string& name) {
  const auto found = std::ranges::find(listing.infos, name, &TensorInfo::name);
  if (found == listing.infos.end()) {
    return bad_input("there is no array " + quoted_name(name) + " to read as bfloat16");
  }
  StoredTensor& stored = listing.stored[static_cast<std::size_t>(found - listing.infos.begin())];
  if (stored.element.type == ElementType::kBfloat16) return Done{};
  if (stored.error || stored.element.type != ElementType::kUint16) {
    return bad_input("array " + quoted_name(name) + " cannot be read as bfloat16: it holds " + found->dtype +
                     ", not uint16");
  }
  stored.element.type = ElementType::kBfloat16;
  stored.is_uint16 = true;
  found->dtype = dtype_name(ElementType::kBfloat16);
  return Done{};
}

Result<TensorListing> list_by_content(std::span<const std::byte> file, const std::string& stem,
                                      ReadProgress* progress) {
  if (looks_like_npy(file)) return list_npy(file, stem);
  if (looks_like_npz(file)) return list_npz(file);
  if (looks_like_safetensors(file)) return list_safetensors(file);
  if (const std::optional<Error> error = other_kind(as_text(file))) return *error;
  return list_table(as_text(file), stem, progress);
}

}  // namespace

Status apply_options(TensorListing& listing, const TensorOptions& options) {
  for (std::size_t i = 0; i < listing.stored.size(); ++i) {
    if (!std::exchange(listing.stored[i].is_uint16, false)) continue;
    listing.stored[i].element.type = ElementType::kUint16;
    listing.infos[i].dtype = dtype_name(ElementType::kUint16);
  }
  for (const std::string& name : options.bfloat16) {
    if (const Status status = read_as_bfloat16(listing, name); !status.ok()) return status;
  }
  return Done{};
}

Result<TensorListing> list_tensors(std::span<const std::byte> file, const std::string& stem,
                                   const TensorOptions& options, ReadProgress* progress) {
  Result<TensorListing> listing = list_by_content(file, stem, progress);
  if (!listing.ok()) return listing;
  if (const Status applied = apply_options(listing.value(), options); !applied.ok()) return applied.error();
  return listing;
}

}  // namespace qkv
