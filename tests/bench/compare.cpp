// bench_compare: our attention against that of other libraries, on this machine, in one run.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <thread>

#include "core/attention/kernels/head_kernel.h"
#include "tests/bench/report.h"

namespace {

using namespace qkv::bench;

constexpr int kExitWrong = 1, kExitUsage = 2, kExitFailed = 3;

struct Arguments {
  std::vector<std::string> cases, programs;
  std::vector<int> threads;
  Protocol protocol;
  bool quick = false, json = false;
};

// The cases that were asked for: by name, or those of --quick, or all.
std::vector<Case> chosen_cases(const Arguments& arguments) {
  std::vector<Case> chosen;
  for (const std::string& name : arguments.cases) chosen.push_back(*find_case(name));
  for (const Case& each : kCases) {
    if (arguments.cases.empty() && (each.quick || !arguments.quick)) chosen.push_back(each);
  }
  return chosen;
}

std::vector<Program> chosen_programs(const Arguments& arguments) {
  std::vector<Program> programs = find_programs(std::filesystem::canonical("/proc/self/exe").parent_path());
  if (!arguments.programs.empty()) {
    std::erase_if(programs, [&](const Program& program) {
      return std::find(arguments.programs.begin(), arguments.programs.end(), program.short_name) ==
             arguments.programs.end();
    });
  }
  return programs;
}

int compare(const Arguments& arguments) {
  const int available = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  std::vector<int> threads = arguments.threads;
  if (threads.empty()) threads = available > 1 ? std::vector{2, 1} : std::vector{1};
  const std::vector<Program> programs = chosen_programs(arguments);
  std::vector<Row> rows;
  bool right = true;
  for (const int count : threads) {
    for (const Case& each : chosen_cases(arguments)) {
      qkv::Result<Row> row = measure(programs, each, count, arguments.protocol);
      if (!row.ok()) {
        std::fprintf(stderr, "bench_compare: %s\n", row.error().message.c_str());
        return kExitFailed;
      }
      for (const Times& times : row.value().times) right = right && times.error <= 1;
      rows.push_back(std::move(row).value());
      std::fprintf(stderr, "%s, %d %s: %.3g ms at least", std::string(each.name).c_str(), count,
                   count == 1 ? "thread" : "threads", rows.back().limit_ms);
      for (const Times& times : rows.back().times) {
        std::fprintf(stderr, "; %s %.3g (%s)", times.short_name.c_str(), times.median_ms, times.setup.c_str());
      }
      std::fputs("\n", stderr);
    }
  }
  const Machine machine{qkv::processor_name(), qkv::kernel_target(), available};
  std::fputs((arguments.json ? json_text(machine, rows) : table_text(machine, rows)).c_str(), stdout);
  return right ? 0 : kExitWrong;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{
      "Times attention by qkvlab and by OpenBLAS, oneDNN and Eigen, each in the best set-up that it finds, against "
      "what\n"
      "the machine can do at most. Every result is checked against float64: exit code 1 where one is wrong.",
      "bench_compare"};
  std::vector<std::string> names;
  for (const Case& each : kCases) names.emplace_back(each.name);
  app.add_flag("--quick", arguments.quick, "A few of the cases");
  app.add_flag("--json", arguments.json, "As JSON, for scripts");
  app.add_option("--case", arguments.cases, "This case alone; may be given several times")->check(CLI::IsMember(names));
  app.add_option("--program", arguments.programs, "ours, OpenBLAS, oneDNN or Eigen alone; several times")
      ->check(CLI::IsMember({"ours", "OpenBLAS", "oneDNN", "Eigen"}));
  app.add_option("--threads", arguments.threads, "Number of threads; several times (default: 2 and 1)")
      ->check(CLI::Range(1, 256));
  app.add_option("--rounds", arguments.protocol.rounds, "Processes of each program in a case (default: 7)")
      ->check(CLI::Range(1, 1000));
  app.add_option("--repeats", arguments.protocol.repeats, "Repeats within a process (default: 5)")
      ->check(CLI::Range(1, 1000));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  return compare(arguments);
}
