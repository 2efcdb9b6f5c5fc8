// What every program of the comparison does: read its arguments, find its best set-up, time it, check it, report.
//
//   PROGRAM --case NAME --threads N [--repeats R] [--setup TEXT]
//
// prints one line of JSON: {"library", "case", "threads", "setup", "ms", "least_ms", "cpu_ms", "repeats", "error"}.
// `ms` is the median and `least_ms` the least wall time, `cpu_ms` the median of the processor time of all threads,
// which says more where other programs run; `error` is the largest as a share of the bound in reference.h. Exit codes:
// 0 right, 1 wrong numbers, 2 wrong arguments, 77 where the library cannot do the case.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/bench/tensors.h"

namespace qkv::bench {

struct Job {
  Case of;
  int threads = 1;
  const Inputs* inputs = nullptr;
  Outputs* outputs = nullptr;
};

// One way of doing a job: how it is called in the report, and its making. What `prepare` does is not timed; what it
// returns does the work once and may be called again.
struct Setup {
  std::string name;
  std::function<std::function<void()>(const Job&)> prepare;
};

struct Contender {
  std::string library;                                   // with its version and, where it has one, its chosen kernels
  std::function<std::vector<Setup>(const Job&)> setups;  // of a job; the fastest is taken
};

int bench_main(int argc, char** argv, const Contender& contender);

}  // namespace qkv::bench
