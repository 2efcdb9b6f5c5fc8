// How far a reading is, in words for a dialog or a terminal.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/read_progress.h"

namespace qkv {

// "512 MiB".
std::string mebibytes(std::uint64_t bytes);
// The share that is read, 0 … 1; 0 until the total is known.
double share_read(const ReadProgress& progress);
// "Read 120 of 512 MiB", or what is done before and after.
std::string reading_words(const ReadProgress& progress);
// "23 %"; empty until the total is known.
std::string percent_words(const ReadProgress& progress);

}  // namespace qkv
