// What is proposed for a file of tensors, as a table and as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "app/cli/map_flags.h"

namespace qkv::cli {

// Roles with their tensors, what there is to choose, what has to be answered and by which flag.
std::string mapping_table(const TensorSet& files, const MappingProposal& proposal, const MapFlags& flags);
nlohmann::ordered_json mapping_json(const TensorSet& files, const MappingProposal& proposal, const MapFlags& flags);

// The mapping that a session was opened by, and what its files say now, with an empty line before it; nothing where it
// has none.
std::string origin_table(const Session& session);
nlohmann::ordered_json origin_json(const Session& session);

}  // namespace qkv::cli
