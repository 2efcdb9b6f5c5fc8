#include "tests/bench/program.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/bench/reference.h"

namespace qkv::bench {
namespace {

constexpr int kExitWrong = 1, kExitUsage = 2, kExitUnable = 77;

struct Arguments {
  std::string name, setup;
  int threads = 1, repeats = 5;
};

std::optional<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    if (i + 1 == argc) return std::nullopt;
    const std::string value = argv[i + 1];
    const int number = std::atoi(value.c_str());
    if (flag == "--case") {
      arguments.name = value;
    } else if (flag == "--setup") {
      arguments.setup = value;
    } else if (flag == "--threads" && number >= 1 && number <= 256) {
      arguments.threads = number;
    } else if (flag == "--repeats" && number >= 1) {
      arguments.repeats = number;
    } else {
      return std::nullopt;
    }
  }
  return arguments;
}

struct Took {
  double ms = 0;      // wall time
  double cpu_ms = 0;  // processor time of all threads, those that spin included
};

Took timed(const std::function<void()>& run) {
  const std::clock_t cpu = std::clock();
  const auto start = std::chrono::steady_clock::now();
  run();
  const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - start;
  return {wall.count(), 1000.0 * static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC};
}

// At least `repeats` times and, where one is short, for as long as the clock and the scheduler need to be fair.
std::vector<Took> time_runs(const std::function<void()>& run, int repeats, double least_total_ms) {
  std::vector<Took> times;
  double total = 0;
  while (static_cast<int>(times.size()) < repeats || total < least_total_ms) {
    times.push_back(timed(run));
    total += times.back().ms;
  }
  return times;
}

std::vector<double> sorted(const std::vector<Took>& times, double Took::*which) {
  std::vector<double> values;
  for (const Took& each : times) values.push_back(each.*which);
  std::sort(values.begin(), values.end());
  return values;
}

// The set-up of that name, or the fastest of all by the best of a few runs.
const Setup* choose(const std::vector<Setup>& setups, const std::string& name, const Job& job) {
  const Setup* chosen = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const Setup& setup : setups) {
    if (setup.name == name) return &setup;
    if (!name.empty()) continue;
    const std::function<void()> run = setup.prepare(job);
    // A first run warms up, and tells whether the set-up is worth more.
    if (timed(run).ms > 2 * least) continue;
    const double best = sorted(time_runs(run, 2, 10), &Took::ms).front();
    if (best < least) chosen = &setup, least = best;
  }
  return chosen;
}

int report(const Contender& contender, const Job& job, const Setup& setup, const std::vector<Took>& times) {
  const double error = worst_error(job.of, *job.inputs, *job.outputs);
  const std::vector<double> wall = sorted(times, &Took::ms), cpu = sorted(times, &Took::cpu_ms);
  nlohmann::ordered_json json;
  json["library"] = contender.library;
  json["case"] = job.of.name;
  json["threads"] = job.threads;
  json["setup"] = setup.name;
  json["ms"] = wall[wall.size() / 2];
  json["least_ms"] = wall.front();
  json["cpu_ms"] = cpu[cpu.size() / 2];
  json["repeats"] = times.size();
  json["error"] = error;
  std::puts(json.dump().c_str());
  return error <= 1 ? 0 : kExitWrong;
}

}  // namespace

int bench_main(int argc, char** argv, const Contender& contender) {
  const std::optional<Arguments> arguments = parse(argc, argv);
  const std::optional<Case> of = arguments ? find_case(arguments->name) : std::nullopt;
  if (!of) {
    std::fprintf(stderr, "usage: %s --case NAME --threads N [--repeats R] [--setup TEXT]; the cases are in cases.h\n",
                 argv[0]);
    return kExitUsage;
  }
  const Inputs inputs = make_inputs(*of);
  Outputs outputs = make_outputs(*of);
  const Job job{*of, arguments->threads, &inputs, &outputs};
  const std::vector<Setup> setups = contender.setups(job);
  if (setups.empty()) return kExitUnable;
  const Setup* setup = choose(setups, arguments->setup, job);
  if (setup == nullptr) {
    std::fprintf(stderr, "%s: --setup: there is no \"%s\"\n", argv[0], arguments->setup.c_str());
    return kExitUsage;
  }
  const std::function<void()> run = setup->prepare(job);
  time_runs(run, 1, 50);  // until the clock of an idle processor is up
  return report(contender, job, *setup, time_runs(run, arguments->repeats, 100));
}

}  // namespace qkv::bench
