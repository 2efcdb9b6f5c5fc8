// A file of named tensors, opened for reading; which format it has is told by its content.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/mapped_file.h"
#include "core/base/read_progress.h"
#include "core/tensor_io/npy.h"

namespace qkv {

// What a file says of one tensor, known without reading its data.
struct TensorInfo {
  std::string name;                  // without ".npy"; a file of one array names it by the file ("q.npy" is q)
  std::string dtype;                 // NumPy's name: "float32", "bfloat16", "bool", "str"; else as the file writes it
  std::vector<std::uint64_t> shape;  // empty = one number
  std::uint64_t bytes = 0;           // of its data, uncompressed
  std::string problem;               // why it cannot be read and what to do; empty if it can
  bool is_text = false;              // read with read_text, and only with it
};

struct TensorOptions {
  std::vector<std::string> bfloat16;  // tensors whose 16-bit unsigned integers are the bits of bfloat16 numbers
};

// What a file may be, for messages.
inline constexpr std::string_view kAcceptedFiles =
    "a session is a JSON object, tensors are .npz, .npy, .safetensors, .csv or .tsv";

// Immutable; copies share what they hold. Reading is safe from several threads at once.
//
// .npy, .npz and .safetensors: only what is asked for is read, large files are mapped into memory. A text file is one
// matrix (see table.h) named by the file, beside NAME.columns and NAME.rows where it names its columns and rows.
class TensorFile {
 public:
  // Errors: kCannotRead, or kBadInput saying what is wrong and where; kUnsupported for a format that is not read;
  // kCancelled. A text file is read here and now: `progress` expects its bytes and counts them.
  static Result<TensorFile> open(const std::filesystem::path& path, const TensorOptions& options = {},
                                 ReadProgress* progress = nullptr);
  static Result<TensorFile> from_bytes(Bytes bytes, std::string stem, const TensorOptions& options = {});
  static Result<TensorFile> from_file(MappedFile file, std::string stem, const TensorOptions& options = {},
                                      ReadProgress* progress = nullptr);

  // The same file read with other options, without opening it again. Errors as open().
  Result<TensorFile> with(const TensorOptions& options) const;

  const std::vector<TensorInfo>& tensors() const;
  const TensorInfo* find(std::string_view name) const;

  // The tensor, or the part of it whose first indices are `leading`: of [L, B, H, N, N] and {1, 0} the [H, N, N] of
  // layer 1, batch 0. kBadInput where there is no such tensor or index, or it cannot be read or would not fit into this
  // machine's memory; the name is in the message. A finite number beyond float32's range is kBadInput in read().
  // `progress` counts the bytes and may end it early with kCancelled; it expects none by itself.
  Result<Tensor> read(std::string_view name, std::span<const std::uint64_t> leading = {},
                      ReadProgress* progress = nullptr) const;
  Result<Tensor64> read_float64(std::string_view name, std::span<const std::uint64_t> leading = {},
                                ReadProgress* progress = nullptr) const;
  // What reading counts for a tensor or its part, in bytes of the file's numbers: of a deflated one all that has to be
  // unpacked. 0 for what is held already, and for what cannot be read.
  std::uint64_t bytes_to_read(std::string_view name, std::span<const std::uint64_t> leading = {}) const;
  // The strings of a text tensor in C order, UTF-8.
  Result<std::vector<std::string>> read_text(std::string_view name) const;

 private:
  struct Content;
  std::shared_ptr<const Content> content_;
};

}  // namespace qkv
