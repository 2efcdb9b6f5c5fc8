// Where a session's numbers were read from: files of tensors, and which of them was what.
//
// A note beside the numbers: a session never needs the files again, and where they say something else by now, the
// numbers of the session count.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/session/tensor_mapping.h"

namespace qkv {

// The place of a file as it is remembered: absolute, without "..". Empty where the folder in which the program runs is
// gone and `path` does not say it all.
std::filesystem::path remembered_place(const std::filesystem::path& path);
// What a file is called in messages.
std::string file_name_text(const std::filesystem::path& path);

struct OriginFile {
  std::filesystem::path path;         // absolute
  std::vector<std::string> bfloat16;  // of its tensors: 16-bit unsigned integers that are read as bfloat16
};

struct TensorOrigin {
  std::vector<OriginFile> files;  // that gave a tensor
  TensorMapping mapping;          // MappedTensor::file is an index in `files`; without `why` and `part`
};

// nullptr where a tensor of the mapping is of no file that could be gone back to: a pipe, the clipboard.
std::shared_ptr<const TensorOrigin> origin_of(const TensorSet& files, const TensorMapping& mapping);

// What the file of a role's tensor says now.
struct OriginNow {
  Role role = Role::kQ;
  bool is_same = false;
  std::string words;  // "as in the file", "3 of 36 cells differ from the file's", "the file is not there", …
};
// Of each tensor of the session's origin; none where it has none. Reads the files.
std::vector<OriginNow> check_origin(const Session& session);

// The fewest words with which propose_mapping() gives the mapping again, so that a layer or a head that is chosen anew
// changes what follows from it.
MappingRequest request_of(const TensorSet& files, const TensorMapping& mapping);

// A file that a session came from, opened once more: with the others beside it, and asked for as it was then.
struct Reopened {
  TensorSet files;  // `file` first
  MappingRequest request;
  std::vector<std::string> missing;  // why another file, or a tensor, is not there: a sentence each
};
Reopened reopen(const TensorOrigin& origin, NamedTensors file, ReadProgress* progress = nullptr);
// Whether the file is one of the origin's, by its place, or by its name where there is no file in that place any more.
bool is_from(const TensorOrigin& origin, const std::filesystem::path& path);

}  // namespace qkv
