#include "core/session/bfloat16_bits.h"

#include <algorithm>
#include <utility>

#include "core/session/tensor_names.h"

namespace qkv {

namespace {

bool is_of_tokens(const TensorInfo& info) {
  return std::ranges::any_of(read_name(info.name),
                             [](const NameReading& reading) { return form_of(reading.role) == RoleForm::kWords; });
}

}  // namespace

std::vector<std::string> bfloat16_candidates(const TensorFile& file) {
  std::vector<std::string> names;
  for (const TensorInfo& info : file.tensors()) {
    if (info.dtype == "uint16" && info.problem.empty() && !is_of_tokens(info)) names.push_back(info.name);
  }
  return names;
}

std::vector<Role> roles_of_integers(const TensorSet& files, const TensorMapping& mapping) {
  std::vector<Role> roles;
  for (const MappedTensor& mapped : mapping.tensors) {
    const TensorInfo* info = files[mapped.file].file.find(mapped.name);
    if (form_of(mapped.role) != RoleForm::kWords && info->dtype == "uint16") roles.push_back(mapped.role);
  }
  return roles;
}

NamedTensors with_bfloat16(NamedTensors file) {
  std::vector<std::string> names = bfloat16_candidates(file.file);
  if (names.empty()) return file;
  Result<TensorFile> read = file.file.with({names});
  if (!read.ok()) return file;  // they are of the type that it needs
  file.file = std::move(read).value();
  file.bfloat16 = std::move(names);
  return file;
}

NamedTensors without_bfloat16(NamedTensors file) {
  if (Result<TensorFile> read = file.file.with({}); read.ok()) file.file = std::move(read).value();
  file.bfloat16.clear();
  return file;
}

}  // namespace qkv
