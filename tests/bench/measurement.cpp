#include "tests/bench/measurement.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "tests/cli/process.h"

namespace qkv::bench {
namespace {

// Long enough for the slowest search for a set-up.
constexpr double kSecondsAtMost = 600;
constexpr int kExitWrong = 1;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Run {
  std::string library, setup;
  double ms = 0, error = 0;
};

Result<Run> run(const Program& program, const Case& of, int threads, const std::string& setup,
                const Protocol& protocol) {
  std::this_thread::sleep_for(std::chrono::milliseconds(protocol.pause_ms));
  std::vector<std::string> words{program.path.string(),
                                 "--case",
                                 std::string(of.name),
                                 "--threads",
                                 std::to_string(threads),
                                 "--repeats",
                                 std::to_string(protocol.repeats)};
  if (!setup.empty()) words.insert(words.end(), {"--setup", setup});
  test::Process process(words);
  const test::Finished finished = process.wait(kSecondsAtMost);
  const auto json = nlohmann::json::parse(finished.out, nullptr, false);
  const bool finished_well = finished.exit_code == 0 || finished.exit_code == kExitWrong;
  if (!finished_well || !json.is_object()) {
    return bad_input(program.path.string() + " --case " + std::string(of.name) + ": exit code " +
                     std::to_string(finished.exit_code) + ": " + finished.err + finished.out);
  }
  // A NaN among the results makes an infinite error, which JSON writes as null.
  return Run{json["library"], json["setup"], json["ms"], json["error"].is_number() ? json["error"].get<double>() : 1e9};
}

}  // namespace

std::vector<Program> find_programs(const std::filesystem::path& folder) {
  std::vector<Program> found;
  for (const auto& [short_name, file, package] : {std::array{"ours", "bench_ours", ""},
                                                  {"OpenBLAS", "peer_openblas", "libopenblas-dev"},
                                                  {"oneDNN", "peer_onednn", "libdnnl-dev"},
                                                  {"Eigen", "peer_eigen", "libeigen3-dev"}}) {
    if (std::filesystem::exists(folder / file)) {
      found.push_back({short_name, folder / file});
    } else {
      std::fprintf(stderr, "%s is left out: %s was not built%s%s\n", short_name, file,
                   *package != '\0' ? "; install " : "", package);
    }
  }
  return found;
}

const Times* Row::best_peer() const {
  const Times* best = nullptr;
  for (const Times& each : times) {
    if (each.short_name != "ours" && (best == nullptr || each.median_ms < best->median_ms)) best = &each;
  }
  return best;
}

Result<Row> measure(const std::vector<Program>& programs, const Case& of, int threads, const Protocol& protocol) {
  Row row;
  row.of = of;
  row.threads = threads;
  for (const Program& program : programs) {
    const Result<Run> found = run(program, of, threads, "", protocol);
    if (!found.ok()) return found.error();
    row.times.push_back({program.short_name, found.value().library, found.value().setup, {}, 0, found.value().error});
  }
  ThreadPool pool(threads);
  std::vector<double> fma, exp;
  for (int round = 0; round < protocol.rounds; ++round) {
    const MachineLimits limits = measure_machine_limits(pool).held;
    fma.push_back(limits.fma_gflops);
    exp.push_back(limits.exp_gelems);
    for (std::size_t i = 0; i < programs.size(); ++i) {
      const Result<Run> timed = run(programs[i], of, threads, row.times[i].setup, protocol);
      if (!timed.ok()) return timed.error();
      row.times[i].ms.push_back(timed.value().ms);
      row.times[i].error = std::max(row.times[i].error, timed.value().error);
    }
  }
  for (Times& each : row.times) each.median_ms = median(each.ms);
  row.limits = {median(fma), median(exp)};
  row.limit_ms = 1000 * row.limits.seconds(of.flops(), of.exps(), threads);
  return row;
}

}  // namespace qkv::bench
