#include "core/tensor_io/tensor_file.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/tensor_io/npz.h"

namespace qkv {

namespace {

// "<f4" as NumPy's name of the type; other descriptions as they are.
std::string dtype_name(const std::string& descr) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kNames{{{"f2", "float16"},
                                                                                  {"f4", "float32"},
                                                                                  {"f8", "float64"},
                                                                                  {"i1", "int8"},
                                                                                  {"i2", "int16"},
                                                                                  {"i4", "int32"},
                                                                                  {"i8", "int64"},
                                                                                  {"u1", "uint8"},
                                                                                  {"u2", "uint16"},
                                                                                  {"u4", "uint32"},
                                                                                  {"u8", "uint64"},
                                                                                  {"b1", "bool"}}};
  if (descr.size() != 3) return descr;
  const auto found = std::ranges::find(kNames, std::string_view(descr).substr(1),
                                       &std::pair<std::string_view, std::string_view>::first);
  return found == kNames.end() ? descr : std::string(found->second);
}

// The part of a tensor whose first indices are `leading`.
template <class TensorType>
Result<TensorType> part_of(TensorType tensor, std::string_view name, std::span<const std::uint64_t> leading) {
  if (leading.empty()) return tensor;
  const auto wrong = [&](const std::string& what) {
    return bad_input("tensor \"" + std::string(name) + "\" has the shape " + shape_text(tensor.shape) + ": " + what);
  };
  if (leading.size() > tensor.shape.size()) {
    return wrong(std::to_string(leading.size()) + " indices are too many");
  }
  std::size_t size = tensor.values.size();
  std::size_t first = 0;
  for (std::size_t i = 0; i < leading.size(); ++i) {
    if (leading[i] >= tensor.shape[i]) {
      return wrong("there is no index " + std::to_string(leading[i]) + " on axis " + std::to_string(i));
    }
    size /= tensor.shape[i];
    first += static_cast<std::size_t>(leading[i]) * size;
  }
  TensorType part;
  part.shape.assign(tensor.shape.begin() + static_cast<std::ptrdiff_t>(leading.size()), tensor.shape.end());
  const auto begin = tensor.values.begin() + static_cast<std::ptrdiff_t>(first);
  part.values.assign(begin, begin + static_cast<std::ptrdiff_t>(size));
  return part;
}

}  // namespace

struct TensorFile::Content {
  NpzFile npz;
  std::vector<TensorInfo> tensors;
};

Result<TensorFile> TensorFile::open(const std::filesystem::path& path) {
  Result<Bytes> bytes = read_file(path);
  if (!bytes.ok()) return bytes.error();
  return from_bytes(std::move(bytes).value(), path.stem().string());
}

Result<TensorFile> TensorFile::from_bytes(Bytes bytes, std::string stem) {
  Result<NpzFile> npz = NpzFile::from_bytes(std::move(bytes), std::move(stem));
  if (!npz.ok()) return npz.error();
  std::vector<TensorInfo> tensors;
  for (const ArrayInfo& array : npz.value().arrays()) {
    tensors.push_back({array.name, dtype_name(array.header.descr), array.header.shape,
                       array.header.count * array.header.item_bytes, array.problem});
  }
  TensorFile file;
  file.content_ = std::make_shared<const Content>(std::move(npz).value(), std::move(tensors));
  return file;
}

const std::vector<TensorInfo>& TensorFile::tensors() const { return content_->tensors; }

const TensorInfo* TensorFile::find(std::string_view name) const {
  const auto found = std::ranges::find(content_->tensors, name, &TensorInfo::name);
  return found == content_->tensors.end() ? nullptr : &*found;
}

Result<Tensor> TensorFile::read(std::string_view name, std::span<const std::uint64_t> leading) const {
  Result<Tensor> tensor = content_->npz.read(name);
  if (!tensor.ok()) return tensor;
  return part_of(std::move(tensor).value(), name, leading);
}

Result<Tensor64> TensorFile::read_float64(std::string_view name, std::span<const std::uint64_t> leading) const {
  Result<Tensor64> tensor = content_->npz.read_float64(name);
  if (!tensor.ok()) return tensor;
  return part_of(std::move(tensor).value(), name, leading);
}

Result<std::vector<std::string>> TensorFile::read_text(std::string_view name) const {
  return unsupported("tensor \"" + std::string(name) + "\" holds no text");
}

}  // namespace qkv
