// What is proposed for a file of tensors, as a table and as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "app/cli/map_flags.h"

namespace qkv::cli {

// Roles with their tensors, what there is to choose, what has to be answered and by which flag.
std::string mapping_table(const TensorSet& files, const MappingProposal& proposal, const MapFlags& flags);
nlohmann::ordered_json mapping_json(const TensorSet& files, const MappingProposal& proposal, const MapFlags& flags);

}  // namespace qkv::cli
