#include "core/session/array_files.h"

#include <string>
#include <utility>

#include "core/base/ascii.h"

namespace qkv {
namespace {

Bytes bytes_of(std::string_view text) {
  const std::span<const std::byte> bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

ArrayFormat array_format(const std::filesystem::path& path) {
  const std::string extension = lower_ascii(path.extension().string());
  return extension == ".npy" ? ArrayFormat::kNpy : extension == ".csv" ? ArrayFormat::kCsv : ArrayFormat::kNpz;
}

NamedArray head_of(const NamedArray& array, std::size_t head) {
  const std::size_t size = array.shape[1] * array.shape[2];
  return std::visit(
      [&](const auto& values) {
        const auto first = values.begin() + static_cast<std::ptrdiff_t>(head * size);
        using Values = std::decay_t<decltype(values)>;
        return NamedArray{
            array.name, {array.shape[1], array.shape[2]}, Values(first, first + static_cast<std::ptrdiff_t>(size))};
      },
      array.values);
}

TableNames names_of(const Session& session, MatrixKind kind, Index rows, Index cols) {
  const auto names = [&](Axis axis, Index count) {
    const AxisNames all(session, axis, count, TokenStyle::kStored);
    std::vector<std::string> texts;
    for (Index i = 0; i < count; ++i) texts.push_back(all[i]);
    return texts;
  };
  return {names(row_axis(kind), rows), names(col_axis(kind), cols)};
}

Result<Bytes> array_file(ArrayFormat format, const std::vector<NamedArray>& arrays, const TableNames* names) {
  if (names != nullptr && format != ArrayFormat::kCsv) {
    return usage_error("only a .csv file has room for the names of rows and columns");
  }
  if (format == ArrayFormat::kNpz) return npz_bytes(arrays);
  if (arrays.size() != 1) {
    return usage_error(std::string(format == ArrayFormat::kNpy ? "an .npy" : "a .csv") +
                       " file holds one array, but there are " + std::to_string(arrays.size()));
  }
  const NamedArray& array = arrays[0];
  if (format == ArrayFormat::kNpy) {
    return std::visit([&](const auto& values) { return npy_bytes(array.shape, std::span(values)); }, array.values);
  }
  if (array.shape.empty() || array.shape.size() > 2 || array.shape.back() == 0) {
    return usage_error("a .csv file holds one matrix, but " + array.name + " has the shape " + shape_text(array.shape));
  }
  return std::visit(
      [&](const auto& values) { return bytes_of(separated_text(std::span(values), array.shape.back(), ',', names)); },
      array.values);
}

}  // namespace qkv
