// What `diff` is told of its two files by the mapping flags.
//
// Results (attn, scores, out) are of OTHER. Inputs are of FILE where it is a file of tensors, else of OTHER. --layer
// and
// --batch choose from every file that has several. A layout without a role would be of both, and is refused where both
// are tensors.
#pragma once

#include "app/cli/map_flags.h"
#include "core/session/compare_request.h"

namespace qkv::cli {

struct DiffMapping {
  MapFlags flags;  // as given
  bool file_is_session = false, other_is_session = false;
  MappingRequest file, other;
};

// Errors: kUsage naming the flag that is for neither file, or for both.
Result<DiffMapping> diff_mapping(const MapFlags& flags, bool file_is_session, bool other_is_session);

// OTHER, and its arrays as they are to be read. Errors bear its name.
struct OtherArrays {
  TensorFile file;
  RequestedPairs requested;
};
Result<OtherArrays> open_other(const std::string& name, const DiffMapping& mapping, std::vector<NamePair> names);

// FILE; `requested` says what OTHER took of the flags, so that not finding it here is no error. nullptr: it is a
// session.
Result<Input> open_diff_input(const std::string& name, const DiffMapping& mapping, const OtherArrays* other);

}  // namespace qkv::cli
