// `qkvlab bench`: how fast attention is on this machine, and what the machine could do at most.
#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/bench_rows.h"
#include "app/cli/commands.h"
#include "app/cli/table.h"
#include "core/attention/kernels/head_kernel.h"
#include "core/base/number_text.h"

namespace qkv::cli {
namespace {

using Json = nlohmann::ordered_json;

// A part of the table; `--only` names it.
struct Section {
  std::string_view name;
  BenchRows rows;
};
constexpr std::array<Section, 7> kSections{{{"variants", bench_variants},
                                            {"sizes", bench_sizes},
                                            {"output", bench_output_alone},
                                            {"layer", bench_layer},
                                            {"edits", bench_edits},
                                            {"pictures", bench_pictures},
                                            {"streamed", bench_streamed}}};

struct Report {
  MachineLimits limits;  // of the quickest bursts
  int threads = 1;
  std::vector<BenchRow> rows;
  std::vector<std::string> left_out;  // why there are no rows of some kind

  // Of the multiply-adds that all threads could have done in the time.
  double share_of_peak(const BenchRow& row) const { return row.gflops() / (limits.fma_gflops * row.threads); }
};

// Three digits that count: "0.123", "4.56", "78.9", "1234".
std::string digits(double value) { return format_fixed(value, value < 1 ? 3 : value < 10 ? 2 : value < 100 ? 1 : 0); }

std::string size_of(const BenchRow& row) {
  return std::to_string(row.heads) + " × " + std::to_string(row.n) + " × " + std::to_string(row.d);
}

// How a row's time stands to what the machine can do; an edit's, to the whole pass that it spares.
std::vector<std::string> rates_of(const Report& report, const BenchRow& row) {
  if (row.is_edit()) return {"", "", "1/" + format_fixed(row.full_seconds / row.seconds, 0) + " of a pass"};
  if (row.picture) {
    const PictureSeconds& part = *row.picture;
    return {"",
            "",
            "compute " + digits(part.compute * 1000),
            "layout " + digits(part.layout * 1000),
            "OpenGL " + digits(part.opengl * 1000),
            "fill " + digits(part.fill * 1000)};
  }
  if (row.flops == 0) return {};
  return {digits(row.gflops()), format_fixed(100 * report.share_of_peak(row), 0) + " %",
          format_fixed(row.seconds / row.limit_seconds(), 2)};
}

std::string text_of(const Report& report) {
  std::vector<std::vector<std::string>> rows{{"", "", "heads × tokens × d", "ms", "GFLOP/s", "of FMA peak", "× limit"}};
  for (const BenchRow& row : report.rows) {
    rows.push_back({row.work, row.variant, size_of(row), digits(row.seconds * 1000)});
    for (std::string& rate : rates_of(report, row)) rows.back().push_back(std::move(rate));
  }
  std::string notes;
  for (const std::string& note : report.left_out) notes += "\nLeft out: " + note + "\n";
  const std::string threads = std::to_string(report.threads) + (report.threads == 1 ? " thread" : " threads");
  return processor_name() + ", " + threads + ", SIMD target " + kernel_target() + ".\n" +
         "At most, for each thread: " + digits(report.limits.fma_gflops) + " GFLOP/s in multiply-adds, " +
         digits(report.limits.exp_gelems) + " Gelem/s in exponentials.\n" +
         "The limit is the time that the products over the visible cells and one exponential for each take at "
         "least,\nat the rates that all threads held between the runs of that row; times and rates are medians.\n\n" +
         table(rows, 2) + notes;
}

std::string json_of(const Report& report) {
  Json json;
  json["processor"] = processor_name();
  json["target"] = kernel_target();
  json["threads"] = report.threads;
  json["fma_gflops"] = report.limits.fma_gflops;
  json["exp_gelems"] = report.limits.exp_gelems;
  json["rows"] = Json::array();
  for (const BenchRow& row : report.rows) {
    Json line{{"work", row.work},
              {"variant", row.variant},
              {"heads", row.heads},
              {"kv_heads", row.kv_heads},
              {"n", row.n},
              {"d", row.d},
              {"threads", row.threads},
              {"ms", row.seconds * 1000}};
    if (row.picture) {
      line["compute_ms"] = row.picture->compute * 1000;
      line["layout_ms"] = row.picture->layout * 1000;
      line["opengl_ms"] = row.picture->opengl * 1000;
      line["fill_ms"] = row.picture->fill * 1000;
    } else if (row.is_edit()) {
      line["of_full_pass"] = row.seconds / row.full_seconds;
    } else if (row.flops > 0) {
      line["gflops"] = row.gflops();
      line["of_fma_peak"] = report.share_of_peak(row);
      line["limit_ms"] = row.limit_seconds() * 1000;
      line["of_limit"] = row.seconds / row.limit_seconds();
    }
    json["rows"].push_back(std::move(line));
  }
  if (!report.left_out.empty()) json["left_out"] = report.left_out;
  return json.dump(2) + "\n";
}

Status bench(int threads, bool quick, bool as_json, const std::optional<std::string>& only) {
  std::vector<std::string_view> names;
  for (const Section& section : kSections) names.push_back(section.name);
  if (only && std::find(names.begin(), names.end(), *only) == names.end()) return unknown_name("--only", *only, names);
  ThreadPool pool(threads);
  Report report;
  report.limits = measure_machine_limits(pool).best;
  report.threads = pool.threads();
  for (const Section& section : kSections) {
    if (only && *only != section.name) continue;
    const Result<std::vector<BenchRow>> made = section.rows({&pool, quick});
    if (!made.ok() && made.error().code == ErrorCode::kNoDisplay) {
      report.left_out.push_back("edit to picture: " + made.error().message);
      continue;
    }
    if (!made.ok()) return made.error();
    report.rows.insert(report.rows.end(), made.value().begin(), made.value().end());
  }
  return print(as_json ? json_of(report) : text_of(report));
}

}  // namespace

int bench_command(const Arguments& words) {
  std::optional<std::string> threads, only;
  bool quick = false, as_json = false;
  CLI::App app{
      "Times attention on this machine in float32: every variant with all its steps kept, as the window shows\n"
      "them, the output alone, a whole layer, edits, the window's picture after each kind of edit, and one head\n"
      "of 131072 tokens. Beside the times: operations a second, and what the machine can do at most.",
      "qkvlab bench"};
  add_text(app, "--threads", threads, "N", "Threads to compute with (default: as many as the processor has)");
  add_text(app, "--only", only, "NAME",
           "One section: variants, sizes, output, layer, edits, pictures or streamed (default: all)");
  app.add_flag("--quick", quick, "Small sizes and few runs: done in seconds, less exact");
  app.add_flag("--json", as_json, "As JSON, for scripts");
  app.footer(
      "Examples:\n"
      "  qkvlab bench\n"
      "  qkvlab bench --threads 1 --json\n"
      "  qkvlab bench --only pictures\n");
  if (const std::optional<int> code = parse_arguments(app, "[--quick] [--json]", words)) return *code;
  int count = 0;
  if (threads) {
    const Result<int> value = parse_int("--threads", *threads, 1, 1024);
    if (!value.ok()) return report(value.error());
    count = value.value();
  }
  return report(bench(count, quick, as_json, only));
}

}  // namespace qkv::cli
