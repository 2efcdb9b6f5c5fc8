// What `qkvlab diff` says of a comparison: as text for a person, as JSON for scripts.
#pragma once

#include <string>

#include "core/session/compare.h"

namespace qkv::cli {

std::string diff_text(const Session& session, const Comparison& comparison);
std::string diff_json(const std::string& file, const std::string& other, const Session& session,
                      const Comparison& comparison);

}  // namespace qkv::cli
