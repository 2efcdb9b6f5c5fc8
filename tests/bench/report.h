// The comparison's numbers as a table for people and as JSON for scripts.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/measurement.h"

namespace qkv::bench {

struct Machine {
  std::string processor, target;  // the processor's name; the SIMD target that our kernels run on
  int threads = 0;                // of the processor
};

// What a row begins with: "8 × 1024 kept, causal", the limit; each program's time and, in brackets, its multiple of the
// limit; and last how many times as long the best peer takes as we do.
std::string table_text(const Machine& machine, const std::vector<Row>& rows);
std::string json_text(const Machine& machine, const std::vector<Row>& rows);

}  // namespace qkv::bench
