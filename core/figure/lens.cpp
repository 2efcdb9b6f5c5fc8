#include "core/figure/lens.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/number_text.h"

namespace qkv {
namespace {

// H·Nq·Nk scores up to here: eight matrices of them in float64 and float32 take half a gigabyte.
constexpr double kMostScores = 1 << 23;

std::optional<Error> check_size(const Shapes& s) {
  const double scores = static_cast<double>(s.heads) * static_cast<double>(s.nq) * static_cast<double>(s.nk);
  if (scores <= kMostScores) return std::nullopt;
  return unsupported("Too much for a lens, which keeps every step in float64: " + std::to_string(s.heads) +
                     " heads of " + std::to_string(s.nq) + "×" + std::to_string(s.nk) +
                     " scores are more than 8,388,608. Use fewer tokens or heads");
}

void add(LensCells& cells, const Trace& trace, MatrixKind kind, Matrix shown) {
  const bool masked = kind == MatrixKind::kAttn;
  const FiniteExtent extent = masked ? finite_extent(shown, trace.keep.get()) : finite_extent(shown);
  FiniteExtent& total = cells.extents[static_cast<std::size_t>(scale_group(kind))];
  total = merge(total, extent);
  cells.each.add(kind, extent);
  cells.shown.add(kind, std::move(shown));
}

std::string short_name(NumberFormat format) {
  switch (format) {
    case NumberFormat::kBfloat16:
      return "bf16";
    case NumberFormat::kFloat16:
      return "fp16";
    case NumberFormat::kFloat32:
      return "fp32";
    case NumberFormat::kFloat64:
      break;
  }
  return "fp64";
}

double largest_of(const FiniteExtent& extent) {
  return static_cast<double>(std::max(std::abs(extent.low), std::abs(extent.high)));
}

}  // namespace

Result<LensCells> lens_cells(const Trace& trace, Lens lens, const GradientTarget& target, const StopFlag* stop) {
  if (std::optional<Error> error = check_size(trace.shapes)) return *error;
  LensCells cells;
  if (const std::optional<NumberFormat> format = lens_format(lens)) {
    Result<Precision> computed = precision(*format, trace.problem, stop);
    if (!computed.ok()) return computed.error();
    cells.precision = std::move(computed).value();
    const MatrixTable<Matrix> differences = std::exchange(cells.precision->difference, {});
    for (const MatrixKind kind : kAllMatrixKinds) {
      for (const Matrix& difference : differences.heads(kind)) add(cells, trace, kind, difference);
    }
  } else {
    Result<Gradient> computed = gradient(trace.problem, target, stop);
    if (!computed.ok()) return computed.error();
    cells.gradient = std::move(computed).value();
    for (const MatrixKind kind : kAllMatrixKinds) {
      for (const MatrixD& by : cells.gradient->by.heads(kind)) add(cells, trace, kind, by.cast<float>());
    }
  }
  return cells;
}

int power_of(const FiniteExtent& extent) {
  const double largest = largest_of(extent);
  if (extent.count == 0 || largest == 0 || (largest >= 0.1 && largest < 1e4)) return 0;
  constexpr int kLeast = -37;  // its factor is a float32
  return std::max(kLeast, static_cast<int>(std::floor(std::log10(largest))));
}

float unit_factor(int power) { return static_cast<float>(std::pow(10.0, -power)); }

std::string unit_words(int power) {
  static constexpr const char* kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  if (power == 0) return "";
  std::string text = power < 0 ? " · 10⁻" : " · 10";
  for (const char c : std::to_string(std::abs(power))) text += kDigits[c - '0'];
  return text;
}

LensName lens_matrix_name(const LensCells& cells, MatrixKind kind, bool transposed) {
  const std::string name = kind == MatrixKind::kScaled ? "scaled" : std::string(symbol(kind)) + (transposed ? "ᵀ" : "");
  if (!cells.precision) return {"∂L/∂" + name, "∂" + name};
  return {"Δ" + name + " " + short_name(cells.precision->format), "Δ" + name};
}

std::string lens_note(const LensCells& cells, MatrixId id) {
  if (!cells.precision) {
    const FiniteExtent& extent = cells.each.at(id);
    const double largest = largest_of(extent);
    return extent.count == 0 || largest == 0 ? "0" : "up to " + format_value(largest, largest < 1 ? 3 : 1);
  }
  const PrecisionSummary* summary = summary_of(*cells.precision, id);
  if (summary == nullptr) return "";
  std::string words = summary->largest == 0 ? "" : format_value(summary->largest_ulps, 1) + " ulp";
  const auto count = [&](Index number, const char* what) {
    if (number > 0) words += (words.empty() ? "" : " · ") + std::to_string(number) + " " + what;
  };
  count(summary->infinite, "∞");
  count(summary->nan, "NaN");
  return words.empty() ? "exact" : words;
}

std::string lens_bar_name(const LensCells& cells, const std::string& name) {
  return (cells.precision ? "Δ of " : "∂L by ") + name;
}

std::string lens_heading(const LensCells& cells, const Shapes& shapes) {
  if (cells.precision) return std::string(format_name(cells.precision->format)) + " − float64";
  return "∂ " + target_words(cells.gradient->target, shapes, 1) + " / ∂ ·";
}

}  // namespace qkv
