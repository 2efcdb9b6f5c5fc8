#include "tests/bench/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/number_text.h"

namespace qkv::bench {
namespace {

using Cells = std::vector<std::string>;

// Three digits that count: "0.234", "5.67", "49.8", "1234".
std::string digits(double value) { return format_fixed(value, value < 1 ? 3 : value < 10 ? 2 : value < 100 ? 1 : 0); }

std::string time_cell(const Times& times, double limit_ms) {
  std::string cell = digits(times.median_ms) + " (" + format_fixed(times.median_ms / limit_ms, 2) + ")";
  if (!(times.error <= 1)) cell += " WRONG";
  return cell;
}

Cells cells_of(const Row& row, const Cells& names) {
  Cells cells{std::string(row.of.name), std::to_string(row.threads), digits(row.limit_ms)};
  for (const std::string& name : names) {
    const auto found =
        std::find_if(row.times.begin(), row.times.end(), [&](const Times& times) { return times.short_name == name; });
    cells.push_back(found == row.times.end() ? "" : time_cell(*found, row.limit_ms));
  }
  const Times* peer = row.best_peer();
  const bool compared = peer != nullptr && row.times.front().short_name == "ours";
  cells.push_back(compared ? format_fixed(peer->median_ms / row.times.front().median_ms, 2) : "");
  return cells;
}

// The first column to the left, numbers to the right, as Markdown, so that it can stand in a README.
std::string markdown(const std::vector<Cells>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const Cells& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < rows[r].size(); ++i) {
      const std::string gap(widths[i] - rows[r][i].size(), ' ');
      text += "| " + (i == 0 ? rows[r][i] + gap : gap + rows[r][i]) + " ";
    }
    text += "|\n";
    if (r > 0) continue;
    for (std::size_t i = 0; i < widths.size(); ++i)
      text += "|" + std::string(widths[i] + 1, '-') + (i == 0 ? "-" : ":");
    text += "|\n";
  }
  return text;
}

// Names of the programs in the order of their columns.
Cells program_names(const std::vector<Row>& rows) {
  Cells names;
  for (const Row& row : rows) {
    for (const Times& times : row.times) {
      if (std::find(names.begin(), names.end(), times.short_name) == names.end()) names.push_back(times.short_name);
    }
  }
  return names;
}

}  // namespace

std::string table_text(const Machine& machine, const std::vector<Row>& rows) {
  const Cells names = program_names(rows);
  Cells head{"case", "threads", "limit ms"};
  for (const std::string& name : names) head.push_back(name + " ms");
  head.push_back("best peer / ours");
  std::vector<Cells> lines{head};
  double fma = 0, exp = 0;
  std::vector<std::string> libraries;
  for (const Row& row : rows) {
    lines.push_back(cells_of(row, names));
    fma = std::max(fma, row.limits.fma_gflops);
    exp = std::max(exp, row.limits.exp_gelems);
    for (const Times& times : row.times) {
      if (std::find(libraries.begin(), libraries.end(), times.library) == libraries.end()) {
        libraries.push_back(times.library);
      }
    }
  }
  std::string text = machine.processor + ", " + std::to_string(machine.threads) + " threads, " + machine.target +
                     "; a thread does " + digits(fma) + " GFLOP/s in multiply-adds and " + digits(exp) +
                     " Gelem/s in exponentials.\n";
  for (std::size_t i = 0; i < libraries.size(); ++i) text += (i == 0 ? "" : "; ") + libraries[i];
  text +=
      ".\nfloat32, d = 64; medians in milliseconds, in brackets as multiples of the limit at the rates that "
      "all threads\nheld before the runs.\n\n";
  return text + markdown(lines);
}

std::string json_text(const Machine& machine, const std::vector<Row>& rows) {
  nlohmann::ordered_json json;
  json["processor"] = machine.processor;
  json["target"] = machine.target;
  json["threads"] = machine.threads;
  json["rows"] = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    nlohmann::ordered_json line;
    line["case"] = row.of.name;
    line["threads"] = row.threads;
    line["fma_gflops"] = row.limits.fma_gflops;
    line["exp_gelems"] = row.limits.exp_gelems;
    line["limit_ms"] = row.limit_ms;
    for (const Times& times : row.times) {
      line["programs"].push_back({{"name", times.short_name},
                                  {"library", times.library},
                                  {"setup", times.setup},
                                  {"ms", times.median_ms},
                                  {"of_limit", times.median_ms / row.limit_ms},
                                  {"rounds_ms", times.ms},
                                  {"error", times.error}});
    }
    if (const Times* peer = row.best_peer()) {
      line["best_peer"] = peer->short_name;
      if (row.times.front().short_name == "ours") {
        line["best_peer_over_ours"] = peer->median_ms / row.times.front().median_ms;
      }
    }
    json["rows"].push_back(line);
  }
  return json.dump(2) + "\n";
}

}  // namespace qkv::bench
