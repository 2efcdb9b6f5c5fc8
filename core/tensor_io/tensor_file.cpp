#include "core/tensor_io/tensor_file.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "core/tensor_io/name_text.h"
#include "core/tensor_io/tensor_listing.h"
#include "core/tensor_io/zip_archive.h"

namespace qkv {

namespace {

// Bytes in the file's memory, or a copy that is kept here.
struct Fetched {
  Bytes owned;
  std::span<const std::byte> bytes;
  bool counted = false;  // as read; else they are when they are decoded
};

// A part of a tensor: what is left of its shape, and where its elements are, counted in elements of the file.
struct Part {
  std::vector<std::uint64_t> shape;
  std::uint64_t count = 1;             // of its elements
  std::uint64_t first = 0;             // the first of them
  std::vector<std::uint64_t> strides;  // between neighbours along each axis of `shape`
};

Error with_name(std::string_view name, Error error) {
  error.message.insert(0, "array " + quoted_name(name) + ": ");
  return error;
}

Result<Part> part_of(const TensorInfo& info, bool fortran_order, std::span<const std::uint64_t> leading) {
  const auto wrong = [&](const std::string& what) {
    return bad_input("its shape is " + shape_text(info.shape) + ": " + what);
  };
  if (leading.size() > info.shape.size()) return wrong(std::to_string(leading.size()) + " indices are too many");
  std::vector<std::uint64_t> strides(info.shape.size());
  std::uint64_t stride = 1;
  for (std::size_t i = 0; i < info.shape.size(); ++i) {
    const std::size_t axis = fortran_order ? i : info.shape.size() - 1 - i;
    strides[axis] = stride;
    stride *= std::max<std::uint64_t>(info.shape[axis], 1);
  }
  Part part;
  for (std::size_t axis = 0; axis < info.shape.size(); ++axis) {
    if (axis >= leading.size()) {
      part.shape.push_back(info.shape[axis]);
      part.strides.push_back(strides[axis]);
      part.count *= info.shape[axis];
    } else if (leading[axis] >= info.shape[axis]) {
      return wrong("there is no index " + std::to_string(leading[axis]) + " on axis " + std::to_string(axis));
    } else {
      part.first += leading[axis] * strides[axis];
    }
  }
  return part;
}

// The largest number of whole elements that a step of reading takes, in bytes.
std::size_t step_bytes(std::uint64_t item_bytes) {
  return static_cast<std::size_t>(std::max<std::uint64_t>(1, kReadStep / item_bytes) * item_bytes);
}

// The elements of a part in C order; `whole` are the bytes of the whole tensor.
Result<Fetched> gather(const Fetched& whole, const Part& part, std::size_t item_bytes, ReadProgress* progress) {
  Fetched gathered;
  Bytes& bytes = gathered.owned;
  const std::size_t size = static_cast<std::size_t>(part.count) * item_bytes;
  bytes.reserve(size);
  std::vector<std::uint64_t> index(part.shape.size());
  std::uint64_t from = part.first;
  while (bytes.size() < size) {
    std::size_t to = bytes.size();
    bytes.resize(std::min(size, to + step_bytes(item_bytes)));
    const std::size_t begin = to;
    for (; to < bytes.size(); to += item_bytes) {
      std::memcpy(bytes.data() + to, whole.bytes.data() + from * item_bytes, item_bytes);
      for (std::size_t axis = index.size(); axis-- > 0;) {
        from += part.strides[axis];
        if (++index[axis] < part.shape[axis]) break;
        from -= part.strides[axis] * index[axis];
        index[axis] = 0;
      }
    }
    if (const Status on = count_read(progress, whole.counted ? 0 : to - begin); !on.ok()) return on.error();
  }
  gathered.bytes = gathered.owned;
  gathered.counted = true;
  return gathered;
}

std::uint64_t physical_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGE_SIZE);
  if (pages <= 0 || page_bytes <= 0) return UINT64_MAX;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
}

Error no_memory(std::uint64_t bytes) {
  return bad_input("it needs " + std::to_string(bytes) +
                   " bytes of memory, which this machine does not have: read a part of it");
}

// Told before memory is taken: the system would grant it and end the program when it is used.
Status check_memory(std::uint64_t bytes) {
  if (bytes > physical_memory()) return no_memory(bytes);
  return Done{};
}

}  // namespace

struct TensorFile::Content {
  std::shared_ptr<const MappedFile> file;  // of every reading of it
  TensorListing listing;

  Result<std::size_t> index_of(std::string_view name) const {
    const auto found = std::ranges::find(listing.infos, name, &TensorInfo::name);
    if (found == listing.infos.end()) return bad_input("there is no array " + quoted_name(name));
    const auto index = static_cast<std::size_t>(found - listing.infos.begin());
    if (const std::optional<Error>& error = listing.stored[index].error) return with_name(name, *error);
    return index;
  }

  // Bytes of a tensor's data.
  Result<Fetched> fetch(std::size_t index, std::uint64_t begin, std::uint64_t count, ReadProgress* progress) const {
    const StoredTensor& stored = listing.stored[index];
    const Status unchanged = file->check_length();
    if (!unchanged.ok()) return unchanged.error();
    Fetched fetched;
    if (stored.place == StoredTensor::Place::kFile) {
      fetched.bytes =
          file->bytes().subspan(static_cast<std::size_t>(stored.offset + begin), static_cast<std::size_t>(count));
      return fetched;
    }
    const Result<ZipArchive> archive = ZipArchive::open(file->bytes());
    if (!archive.ok()) return archive.error();
    using Check = ZipArchive::Check;
    const Check check = count < listing.infos[index].bytes ? Check::kPartAlone : Check::kChecksum;
    Result<Bytes> part = archive.value().part(stored.entry, stored.offset + begin, count, check, progress);
    if (!part.ok()) return part.error();
    fetched.owned = std::move(part).value();
    fetched.bytes = fetched.owned;
    fetched.counted = true;
    return fetched;
  }

  // The bytes of a part's elements in C order.
  Result<Fetched> fetch_part(std::size_t index, const Part& part, ReadProgress* progress) const {
    if (part.count == 0) return Fetched{};  // its place may be beyond data that has no bytes
    const StoredTensor& stored = listing.stored[index];
    const std::uint64_t item_bytes = stored.element.bytes;
    if (!stored.fortran_order) {
      return fetch(index, part.first * item_bytes, part.count * item_bytes, progress);
    }
    const Result<Fetched> whole = fetch(index, 0, listing.infos[index].bytes, progress);
    if (!whole.ok()) return whole.error();
    return gather(whole.value(), part, static_cast<std::size_t>(item_bytes), progress);
  }

  // Bytes that fetch_part and decoding what it gives count as read.
  std::uint64_t bytes_to_read(std::size_t index, const Part& part) const {
    const StoredTensor& stored = listing.stored[index];
    const TensorInfo& info = listing.infos[index];
    const std::uint64_t part_bytes = part.count * stored.element.bytes;
    if (part.count == 0) return 0;
    if (stored.place == StoredTensor::Place::kFile) return part_bytes;
    if (stored.place != StoredTensor::Place::kEntry) return 0;
    const std::uint64_t fetched = stored.fortran_order ? info.bytes : part_bytes;
    const bool to_its_end = stored.deflated || fetched == info.bytes;  // from its header on, for the checksum
    return to_its_end ? stored.offset + info.bytes : fetched;
  }

  // Memory that fetch_part takes beside the file's.
  std::uint64_t fetched_bytes(std::size_t index, const Part& part) const {
    const StoredTensor& stored = listing.stored[index];
    const std::uint64_t part_bytes = part.count * stored.element.bytes;
    if (stored.place == StoredTensor::Place::kFile) return stored.fortran_order ? part_bytes : 0;
    return stored.fortran_order ? listing.infos[index].bytes + part_bytes : part_bytes;
  }
};

namespace {

// A step at a time: memory that is cleared just before it is filled is in the processor's cache.
template <class Value>
Result<std::vector<Value>> decode(const Fetched& fetched, Element element, ReadProgress* progress) {
  std::vector<Value> values;
  values.reserve(fetched.bytes.size() / static_cast<std::size_t>(element.bytes));
  const std::size_t most = step_bytes(element.bytes);
  for (std::span<const std::byte> rest = fetched.bytes; !rest.empty();) {
    const std::span<const std::byte> step = rest.first(std::min(most, rest.size()));
    rest = rest.subspan(step.size());
    if (const Status added = append_values(values, step, element); !added.ok()) return added.error();
    if (const Status on = count_read(progress, fetched.counted ? 0 : step.size()); !on.ok()) return on.error();
  }
  return values;
}

// The numbers of a part of a table, which are held.
Result<std::vector<float>> table_part(const Table& table, const Part& part, float) {
  return float32_values(table, static_cast<std::size_t>(part.first), static_cast<std::size_t>(part.count));
}
Result<std::vector<double>> table_part(const Table& table, const Part& part, double) {
  const auto first = static_cast<std::ptrdiff_t>(part.first), end = first + static_cast<std::ptrdiff_t>(part.count);
  return std::vector<double>(table.values.begin() + first, table.values.begin() + end);
}

// Values of a part. Errors without the tensor's name.
template <class Value, class Content>
Result<std::vector<Value>> values_of(const Content& content, std::size_t index, const Part& part,
                                     ReadProgress* progress) {
  const StoredTensor& stored = content.listing.stored[index];
  if (stored.place == StoredTensor::Place::kTable) return table_part(content.listing.table, part, Value());
  const std::uint64_t needed = content.fetched_bytes(index, part) + part.count * sizeof(Value);
  if (const Status fits = check_memory(needed); !fits.ok()) return fits.error();
  try {
    const Result<Fetched> fetched = content.fetch_part(index, part, progress);
    if (!fetched.ok()) return fetched.error();
    return decode<Value>(fetched.value(), stored.element, progress);
  } catch (const std::bad_alloc&) {
    return no_memory(needed);
  }
}

template <class TensorType, class Value, class Content>
Result<TensorType> read_tensor(const Content& content, std::string_view name, std::span<const std::uint64_t> leading,
                               ReadProgress* progress) {
  const Result<std::size_t> index = content.index_of(name);
  if (!index.ok()) return index.error();
  const TensorInfo& info = content.listing.infos[index.value()];
  if (info.is_text) return with_name(name, bad_input("it holds text, not numbers"));
  const StoredTensor& stored = content.listing.stored[index.value()];
  Result<Part> part = part_of(info, stored.fortran_order, leading);
  if (!part.ok()) return with_name(name, part.error());
  Result<std::vector<Value>> values = values_of<Value>(content, index.value(), part.value(), progress);
  if (!values.ok()) {
    const bool stopped = values.error().code == ErrorCode::kCancelled;  // which is nothing about the tensor
    return stopped ? values.error() : with_name(name, values.error());
  }
  return TensorType{std::move(part.value().shape), std::move(values).value()};
}

}  // namespace

Result<TensorFile> TensorFile::open(const std::filesystem::path& path, const TensorOptions& options,
                                    ReadProgress* progress) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok()) return file.error();
  return from_file(std::move(file).value(), path.stem().string(), options, progress);
}

Result<TensorFile> TensorFile::from_bytes(Bytes bytes, std::string stem, const TensorOptions& options) {
  return from_file(MappedFile(std::move(bytes)), std::move(stem), options);
}

Result<TensorFile> TensorFile::from_file(MappedFile file, std::string stem, const TensorOptions& options,
                                         ReadProgress* progress) {
  Result<TensorListing> listing = list_tensors(file.bytes(), stem, options, progress);
  if (!listing.ok()) return listing.error();
  TensorFile opened;
  opened.content_ = std::make_shared<const Content>(
      Content{std::make_shared<const MappedFile>(std::move(file)), std::move(listing).value()});
  return opened;
}

Result<TensorFile> TensorFile::with(const TensorOptions& options) const {
  TensorListing listing = content_->listing;
  if (const Status applied = apply_options(listing, options); !applied.ok()) return applied.error();
  TensorFile changed;
  changed.content_ = std::make_shared<const Content>(Content{content_->file, std::move(listing)});
  return changed;
}

const std::vector<TensorInfo>& TensorFile::tensors() const { return content_->listing.infos; }

const TensorInfo* TensorFile::find(std::string_view name) const {
  const std::vector<TensorInfo>& infos = tensors();
  const auto found = std::ranges::find(infos, name, &TensorInfo::name);
  return found == infos.end() ? nullptr : &*found;
}

Result<Tensor> TensorFile::read(std::string_view name, std::span<const std::uint64_t> leading,
                                ReadProgress* progress) const {
  return read_tensor<Tensor, float>(*content_, name, leading, progress);
}

Result<Tensor64> TensorFile::read_float64(std::string_view name, std::span<const std::uint64_t> leading,
                                          ReadProgress* progress) const {
  return read_tensor<Tensor64, double>(*content_, name, leading, progress);
}

std::uint64_t TensorFile::bytes_to_read(std::string_view name, std::span<const std::uint64_t> leading) const {
  const Result<std::size_t> index = content_->index_of(name);
  if (!index.ok()) return 0;
  const Result<Part> part =
      part_of(tensors()[index.value()], content_->listing.stored[index.value()].fortran_order, leading);
  return part.ok() ? content_->bytes_to_read(index.value(), part.value()) : 0;
}

Result<std::vector<std::string>> TensorFile::read_text(std::string_view name) const {
  const Result<std::size_t> found = content_->index_of(name);
  if (!found.ok()) return found.error();
  const std::size_t index = found.value();
  const TensorInfo& info = tensors()[index];
  if (!info.is_text) return with_name(name, unsupported("it holds no text"));
  const StoredTensor& stored = content_->listing.stored[index];
  if (stored.place == StoredTensor::Place::kColumns) return content_->listing.table.column_names;
  if (stored.place == StoredTensor::Place::kRows) return content_->listing.table.row_names;
  const Result<Part> part = part_of(info, stored.fortran_order, {});
  if (!part.ok()) return with_name(name, part.error());
  // A text is at least as large as its string object, or what it needs as UTF-8.
  const std::uint64_t needed =
      content_->fetched_bytes(index, part.value()) + info.bytes + part.value().count * sizeof(std::string);
  if (const Status fits = check_memory(needed); !fits.ok()) return with_name(name, fits.error());
  try {
    const Result<Fetched> fetched = content_->fetch_part(index, part.value(), nullptr);
    if (!fetched.ok()) return with_name(name, fetched.error());
    return decode_text(fetched.value().bytes, stored.element);
  } catch (const std::bad_alloc&) {
    return with_name(name, no_memory(needed));
  }
}

}  // namespace qkv
