// The programs of the comparison run in turns, and their times.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/attention/kernels/machine_limits.h"
#include "core/base/result.h"
#include "tests/bench/cases.h"

namespace qkv::bench {

struct Program {
  std::string short_name;  // "ours", "OpenBLAS", …
  std::filesystem::path path;
};

// Those that were built beside this one, ours first; of the others a line on stderr says that they are left out.
std::vector<Program> find_programs(const std::filesystem::path& folder);

// One program in one case.
struct Times {
  std::string short_name, library, setup;
  std::vector<double> ms;  // the median of each round's process
  double median_ms = 0;
  double error = 0;  // the largest of all rounds, as a share of the bound in reference.h; more than 1 is wrong
};

struct Row {
  Case of;
  int threads = 1;
  MachineLimits limits;      // of one of the threads: medians of what all held before each round
  double limit_ms = 0;       // what the machine needs at least
  std::vector<Times> times;  // ours first
  const Times* best_peer() const;
};

struct Protocol {
  int rounds = 7;
  int repeats = 5;     // of the work within one process
  int pause_ms = 120;  // between processes: some libraries' threads keep spinning for a while
};

// Every program looks for its best set-up once; then they run one after another, round by round, so that a slow spell
// of the machine hits all of them. Errors: a program that fails, with what it said.
Result<Row> measure(const std::vector<Program>& programs, const Case& of, int threads, const Protocol& protocol);

}  // namespace qkv::bench
