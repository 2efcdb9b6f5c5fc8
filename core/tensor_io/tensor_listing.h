// What a tensor file holds, found without reading its data: one list whatever the format.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/tensor_io/element.h"
#include "core/tensor_io/table.h"
#include "core/tensor_io/tensor_file.h"

namespace qkv {

// Where and how a tensor is stored.
struct StoredTensor {
  enum class Place {
    kFile,     // the file's bytes from `offset` on
    kEntry,    // the bytes of zip entry `entry` from `offset` on
    kTable,    // the numbers of the table
    kColumns,  // its column names
    kRows,     // its row names
  };
  Place place = Place::kFile;
  Element element;
  bool fortran_order = false;
  bool is_uint16 = false;  // in the file, where options make it bfloat16
  bool deflated = false;   // an entry that is read from its beginning to its end, whatever part is asked for
  std::uint64_t offset = 0;
  std::uint64_t entry = 0;
  std::optional<Error> error;  // why it is not read; its message is the info's problem
};

struct TensorListing {
  std::vector<TensorInfo> infos;
  std::vector<StoredTensor> stored;  // of each info
  Table table;                       // of a text file
};

// `file` is the whole file, `stem` its name without the ending. Errors as TensorFile::open. A table counts as read.
Result<TensorListing> list_tensors(std::span<const std::byte> file, const std::string& stem,
                                   const TensorOptions& options, ReadProgress* progress = nullptr);

// In place of the options so far. kBadInput where a tensor that they name is not there or is of another type.
Status apply_options(TensorListing& listing, const TensorOptions& options);

}  // namespace qkv
