// Arrays as files: several in an .npz, one in an .npy, one matrix in a .csv.
#pragma once

#include <filesystem>
#include <vector>

#include "core/attention/matrix.h"
#include "core/base/file.h"
#include "core/session/session.h"
#include "core/tensor_io/csv_writer.h"
#include "core/tensor_io/npz.h"

namespace qkv {

enum class ArrayFormat { kNpz, kNpy, kCsv };

// By the name's end, in small or capital letters: ".npy", ".csv"; any other is kNpz.
ArrayFormat array_format(const std::filesystem::path& path);

// The matrix of one head of an array [heads, rows, columns]. `head` is one of them.
NamedArray head_of(const NamedArray& array, std::size_t head);

// What stands on both axes of a matrix of so many cells: tokens as they are stored, so that reading gives them back,
// and numbers from 1 where an axis has no tokens.
TableNames names_of(const Session& session, MatrixKind kind, Index rows, Index cols);

// The content of a file. kUsage where `arrays` do not fit in one: not one array for .npy, not one matrix or row for
// .csv. Its text is plain numbers, so that np.loadtxt reads it without being told more, or has `names` around them;
// other formats have no room for names (kUsage).
Result<Bytes> array_file(ArrayFormat format, const std::vector<NamedArray>& arrays, const TableNames* names = nullptr);

}  // namespace qkv
