#include "app/cli/diff_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/cli/common.h"
#include "app/cli/table.h"
#include "core/base/number_text.h"
#include "core/session/compare_words.h"

namespace qkv::cli {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> cell_row(const Session& session, const Difference& difference, const std::string& what,
                                  const std::string& size, const CellDifference& cell) {
  return {"  " + what, size, printable(cell_words(session, difference, cell.cell)),
          "ours " + cell_text(cell.ours) + ", theirs " + cell_text(cell.theirs)};
}

float largest_of(const std::vector<float>& rows) {
  float most = 0;
  for (const float row : rows) most = std::isnan(row) || row > most ? row : most;
  return most;
}

// How many are wrong in each head that has such cells.
std::string by_head(const Difference& difference) {
  if (difference.errors.size() < 2 || difference.equal()) return "";
  std::string line;
  std::size_t said = 0;
  constexpr std::size_t kSaid = 16;
  for (std::size_t head = 0; head < difference.errors.size(); ++head) {
    const Index wrong = difference.wrong_by_head[head];
    if (wrong == 0 || ++said > kSaid) continue;
    line += (line.empty() ? "  wrong by head   " : ", ") + std::to_string(head) + ": " + std::to_string(wrong);
  }
  return line + (said > kSaid ? " and " + std::to_string(said - kSaid) + " more heads" : "") + "\n";
}

std::string matrix_text(const Session& session, const ComparedArray& array, const Difference& difference) {
  const auto size = [](const CellDifference& cell) { return error_text(std::abs(cell.error())); };
  std::vector<std::vector<std::string>> rows;
  if (difference.largest) {
    rows.push_back(cell_row(session, difference, "largest error", size(*difference.largest), *difference.largest));
  }
  if (difference.largest_relative) {
    const std::string part = format_fixed(100 * relative_error(*difference.largest_relative), 1, false) + " %";
    rows.push_back(cell_row(session, difference, "worst relative", part, *difference.largest_relative));
  }
  if (difference.first_wrong) {
    rows.push_back(
        cell_row(session, difference, "first wrong", size(*difference.first_wrong), *difference.first_wrong));
  }
  return printable(matrix_words(array, difference)) + ": " + verdict_words(difference) + "\n" + table(rows) +
         by_head(difference);
}

// The equal ones in one line each of what they are off by.
std::string equal_text(const Comparison& comparison) {
  std::string exact, near;
  double largest = 0;
  for (std::size_t i = 0; i < comparison.arrays.size(); ++i) {
    const Difference& difference = comparison.differences[i];
    if (!difference.equal()) continue;
    std::string& names = difference.largest ? near : exact;
    names += (names.empty() ? "" : ", ") + printable(matrix_words(comparison.arrays[i], difference));
    if (difference.largest) largest = std::max(largest, std::abs(difference.largest->error()));
  }
  std::string text;
  if (!exact.empty()) text += "equal, to the last digit: " + exact + "\n";
  if (!near.empty()) text += "equal, off by at most " + error_text(largest) + ": " + near + "\n";
  return text;
}

std::string cause_text(const Comparison& comparison) {
  const DiagnosisWords words = diagnosis_words(comparison);
  std::vector<std::vector<std::string>> rows;
  for (const auto& [label, text] : words.lines) rows.push_back({"  " + label, text});
  return "\n" + words.headline + "\n" + table(rows);
}

// JSON has neither NaN nor ∞: they are text.
Json number_json(double value) { return std::isfinite(value) ? Json(value) : Json(format_shortest(value)); }

Json cell_json(const Session& session, const Difference& difference, const std::optional<CellDifference>& cell) {
  if (!cell) return nullptr;
  Json json;
  if (is_per_head(difference.kind) && !difference.mean_of_heads) json["head"] = cell->cell.id.head;
  json["row"] = cell->cell.row;
  json["column"] = cell->cell.col;
  json["words"] = cell_words(session, difference, cell->cell);
  json["ours"] = number_json(cell->ours);
  json["theirs"] = number_json(cell->theirs);
  json["error"] = number_json(cell->error());
  json["relative_error"] = number_json(relative_error(*cell));
  return json;
}

Json matrix_json(const Session& session, const ComparedArray& array, const Difference& difference) {
  Json json;
  json["matrix"] = file_key(difference.kind);
  json["array"] = array.name;
  if (!array.reading.empty()) json["read_as"] = array.reading;
  json["equal"] = difference.equal();
  json["cells"] = difference.cells;
  json["wrong"] = difference.wrong;
  json["not_finite"] = difference.not_finite;
  json["magnitude"] = difference.magnitude;
  json["bound"] = difference.bound;
  json["largest"] = cell_json(session, difference, difference.largest);
  json["largest_relative"] = cell_json(session, difference, difference.largest_relative);
  json["first_wrong"] = cell_json(session, difference, difference.first_wrong);
  json["heads"] = Json::array();
  for (std::size_t head = 0; head < difference.errors.size(); ++head) {
    json["heads"].push_back(
        {{"wrong", difference.wrong_by_head[head]},
         {"largest", number_json(static_cast<double>(largest_of(difference.largest_by_row[head])))}});
  }
  return json;
}

Json diagnosis_json(const Diagnosis& diagnosis) {
  Json json;
  json["inputs_differ"] = diagnosis.inputs_differ;
  json["before"] = number_json(diagnosis.before);
  const bool rounding = diagnosis.rounding != NumberFormat::kFloat64;
  json["rounding"] = rounding ? Json(format_name(diagnosis.rounding)) : Json(nullptr);
  json["explanations"] = Json::array();
  for (std::size_t i = 0; i < diagnosis.explanations.size(); ++i) {
    const CauseFit& each = diagnosis.explanations[i];
    Json causes = Json::array();
    for (const Cause& cause : each.causes) {
      causes.push_back({{"id", cause.id}, {"name", cause.name}, {"meaning", cause.meaning}, {"fix", cause.fix}});
    }
    json["explanations"].push_back({{"causes", causes},
                                    {"complete", each.complete},
                                    {"tied_with_first", i <= diagnosis.ties},
                                    {"wrong_left", each.wrong_left},
                                    {"remaining", number_json(each.remaining)}});
  }
  json["explained_up_to"] = diagnosis.explanations.empty() ? Json(nullptr) : Json(file_key(diagnosis.explained));
  json["tried"] = {{"single", diagnosis.singles},
                   {"pairs", diagnosis.pairs},
                   {"all_pairs", diagnosis.all_pairs},
                   {"rows", diagnosis.rows_tried},
                   {"all_rows", diagnosis.rows}};
  return json;
}

}  // namespace

std::string diff_text(const Session& session, const Comparison& comparison) {
  std::string text;
  for (const std::string& line : comparison.settings) text += printable(line) + "\n";
  if (!comparison.settings.empty()) text += "\n";
  text += equal_text(comparison);
  for (std::size_t i = 0; i < comparison.arrays.size(); ++i) {
    if (comparison.differences[i].equal()) continue;
    text += matrix_text(session, comparison.arrays[i], comparison.differences[i]);
  }
  for (const LeftAlone& each : comparison.left_alone) {
    text += "left alone: " + printable(each.name) + ": " + printable(each.reason) + "\n";
  }
  return comparison.equal() ? text : text + cause_text(comparison);
}

std::string diff_json(const std::string& file, const std::string& other, const Session& session,
                      const Comparison& comparison) {
  Json json;
  json["file"] = file;
  json["other"] = other;
  json["equal"] = comparison.equal();
  json["tolerance"] = comparison.tolerance;
  json["settings"] = comparison.settings;
  json["matrices"] = Json::array();
  for (std::size_t i = 0; i < comparison.arrays.size(); ++i) {
    json["matrices"].push_back(matrix_json(session, comparison.arrays[i], comparison.differences[i]));
  }
  json["left_alone"] = Json::array();
  for (const LeftAlone& each : comparison.left_alone) {
    json["left_alone"].push_back({{"array", each.name}, {"reason", each.reason}});
  }
  json["cause"] = comparison.equal() ? Json(nullptr) : diagnosis_json(comparison.diagnosis);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace qkv::cli
