// Arrays as files: several in an .npz, one in an .npy, one matrix in a .csv.
#pragma once

#include <filesystem>
#include <vector>

#include "core/attention/matrix.h"
#include "core/base/file.h"
#include "core/tensor_io/npz.h"

namespace qkv {

enum class ArrayFormat { kNpz, kNpy, kCsv };

// By the name's end, in small or capital letters: ".npy", ".csv"; any other is kNpz.
ArrayFormat array_format(const std::filesystem::path& path);

// The matrix of one head of an array [heads, rows, columns]. `head` is one of them.
NamedArray head_of(const NamedArray& array, std::size_t head);

// The content of a file. kUsage where `arrays` do not fit in one: not one array for .npy, not one matrix or row for
// .csv, whose text is plain numbers without labels, so that np.loadtxt and spreadsheets read it.
Result<Bytes> array_file(ArrayFormat format, const std::vector<NamedArray>& arrays);

}  // namespace qkv
