#include "core/session/compare_words.h"

#include <algorithm>
#include <cmath>

#include "core/base/number_text.h"

namespace qkv {
namespace {

std::string counted(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// A part of the largest number of a matrix.
std::string part_words(double part) {
  if (std::isinf(part)) return "NaN or infinite";
  if (part < 1e-7) return "almost nothing";
  return error_text(100 * part) + " % of the largest number";
}

std::string names_of(const CauseFit& explanation) {
  std::string text;
  for (const Cause& cause : explanation.causes) text += (text.empty() ? "" : ", and ") + cause.name;
  return text;
}

std::string tried_words(const Diagnosis& diagnosis) {
  std::string text = counted(diagnosis.singles, "usual mistake");
  if (diagnosis.pairs > 0) {
    text += " and " + std::to_string(diagnosis.pairs);
    if (diagnosis.pairs < diagnosis.all_pairs) text += " of the " + std::to_string(diagnosis.all_pairs);
    text += " pairs of them";
  }
  if (diagnosis.rows_tried < diagnosis.rows) {
    text += ", on " + std::to_string(diagnosis.rows_tried) + " of " +
            counted(static_cast<std::size_t>(diagnosis.rows), "row");
  }
  return text;
}

void add_explanation(const Comparison& comparison, DiagnosisWords& words) {
  const Diagnosis& diagnosis = comparison.diagnosis;
  const CauseFit& best = diagnosis.explanations[0];
  const bool two = best.causes.size() > 1;
  words.headline = best.complete ? "Likely cause" : "Likely part of the cause";
  words.headline += (two ? ", two at once, in theirs: " : ", in theirs: ") + names_of(best);
  for (const Cause& cause : best.causes) {
    words.lines.emplace_back("what it does", cause.meaning);
    words.lines.emplace_back("to fix it", cause.fix);
  }
  if (!best.complete) {
    const std::string right = format_fixed(100 * (1 - best.wrong_left), 1, false);
    words.lines.emplace_back("with it",
                             right + " % of the wrong cells are right; the others are wrong for another reason");
  }
  std::string then = "the largest error falls from " + part_words(diagnosis.before) + " to ";
  then += best.format == NumberFormat::kFloat64
              ? part_words(best.remaining)
              : "what rounding to " + std::string(format_name(best.format)) + " leaves";
  if (best.complete) words.lines.emplace_back("with it", then);
  for (const Difference& difference : comparison.differences) {
    if (difference.equal() || difference.kind <= diagnosis.explained) continue;
    words.lines.emplace_back("but", std::string(file_key(difference.kind)) + " differs for another reason as well");
  }
  constexpr std::size_t kOthers = 2;
  for (std::size_t i = 1; i < diagnosis.explanations.size() && i <= std::max(diagnosis.ties, kOthers); ++i) {
    const CauseFit& other = diagnosis.explanations[i];
    if (i <= diagnosis.ties) {
      words.lines.emplace_back("or else", names_of(other) + ": the numbers here are the same");
    } else if (other.complete || !best.complete) {
      words.lines.emplace_back("less likely", names_of(other));
    }
  }
}

}  // namespace

std::string error_text(double value) {
  if (!std::isfinite(value)) return format_shortest(value);
  const double size = std::abs(value);
  if (size != 0 && (size < 1e-3 || size >= 1e6)) {
    const int exponent = static_cast<int>(std::floor(std::log10(size)));
    return format_fixed(value / std::pow(10.0, exponent), 1, false) + "e" + std::to_string(exponent);
  }
  return format_fixed(value, size >= 100 ? 1 : size >= 1 ? 3 : 4, false);
}

std::string cell_text(double value) { return format_shortest(static_cast<float>(value)); }

std::string matrix_words(const ComparedArray& array, const Difference& difference) {
  std::string text{file_key(difference.kind)};
  if (array.name != text) text += " (theirs: " + array.name + ")";
  const bool usual = array.reading.empty() || array.reading == "[H, N, N]" || array.reading == "[H, N, d]" ||
                     array.reading == "[N, N]" || array.reading == "[rows, columns]" || array.reading == "[columns]";
  return usual ? text : text + " read as " + array.reading;
}

std::string verdict_words(const Difference& difference) {
  if (difference.equal()) {
    if (!difference.largest) return "equal, to the last digit";
    return "equal, off by at most " + error_text(std::abs(difference.largest->error()));
  }
  std::string text = std::to_string(difference.wrong) + " of " +
                     counted(static_cast<std::size_t>(difference.cells), "cell") + " wrong, off by more than " +
                     error_text(difference.bound);
  if (difference.not_finite > 0) {
    text += "; " + std::to_string(difference.not_finite) + " of them NaN or infinite on one side";
  }
  return text;
}

std::string place_words(const Session& session, const Difference& difference, const MatrixCell& cell,
                        TokenStyle tokens) {
  const auto name = [&](Axis axis, Index index) { return AxisNames(session, axis, index + 1, tokens)[index]; };
  const bool by_head = is_per_head(difference.kind) && difference.errors.size() > 1;
  return (by_head ? "head " + std::to_string(cell.id.head + 1) + ", " : "") + "row " +
         name(row_axis(difference.kind), cell.row) + ", column " + name(col_axis(difference.kind), cell.col);
}

std::string both_words(const CellDifference& cell) {
  return "ours " + cell_text(cell.ours) + ", theirs " + cell_text(cell.theirs);
}

DiagnosisWords diagnosis_words(const Comparison& comparison) {
  const Diagnosis& diagnosis = comparison.diagnosis;
  const bool found = !diagnosis.explanations.empty();
  const bool rounding = diagnosis.rounding != NumberFormat::kFloat64;
  DiagnosisWords words;
  if (rounding && !diagnosis.inputs_differ && !(found && diagnosis.explanations[0].complete)) {
    const std::string format(format_name(diagnosis.rounding));
    words.headline = "Likely cause, in theirs: the precision";
    words.lines.emplace_back("what it does", "Rounding every step to " + format + " makes errors of this size.");
    words.lines.emplace_back("to fix it", "Compute in a wider format, or compare with a larger tolerance.");
    return words;
  }
  if (found) {
    add_explanation(comparison, words);
  } else if (diagnosis.inputs_differ) {
    words.headline = "The inputs are not the same";
    words.lines.emplace_back("to fix it", "Compare from the same inputs: what follows from others differs as well.");
  } else {
    words.headline = "No likely cause: no usual mistake explains the difference";
  }
  if (diagnosis.singles > 0) words.lines.emplace_back("tried", tried_words(diagnosis));
  return words;
}

}  // namespace qkv
