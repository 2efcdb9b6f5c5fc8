// Arrays of 16-bit unsigned integers whose bits are bfloat16 numbers, which NumPy has no type for.
#pragma once

#include <string>
#include <vector>

#include "core/session/tensor_mapping.h"

namespace qkv {

// The arrays of 16-bit unsigned integers that may be such: all but those that are named as tokens. Of a file that reads
// them as bfloat16 already, none.
std::vector<std::string> bfloat16_candidates(const TensorFile& file);

// The file as it is with those arrays read as bfloat16 numbers; as it is where it has none.
NamedTensors with_bfloat16(NamedTensors file);
// The file with every array as it is stored.
NamedTensors without_bfloat16(NamedTensors file);

// The inputs that a mapping takes from 16-bit unsigned integers as such: where they hold bits, nothing in the file says
// so.
std::vector<Role> roles_of_integers(const TensorSet& files, const TensorMapping& mapping);

}  // namespace qkv
