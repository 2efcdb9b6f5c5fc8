#include "app/cli/lens_flags.h"

#include <charconv>

namespace qkv::cli {
namespace {

// "3:0:12" as whole numbers from 0 on, exactly `count` of them.
std::optional<std::vector<Index>> parse_numbers(std::string_view text, std::size_t count) {
  std::vector<Index> numbers;
  while (true) {
    Index number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem != std::errc{} || number < 0 || text.starts_with('-')) return std::nullopt;
    numbers.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) break;
    if (text[0] != ':') return std::nullopt;
    text.remove_prefix(1);
  }
  if (numbers.size() != count) return std::nullopt;
  return numbers;
}

std::optional<MatrixCell> parse_cell(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::optional<MatrixKind> kind = kind_from_key(text.substr(0, colon));
  if (!kind || !can_be_target(*kind)) return std::nullopt;
  const bool has_head = is_per_head(*kind);
  const auto numbers = parse_numbers(text.substr(colon + 1), has_head ? 3 : 2);
  if (!numbers || (has_head && numbers->front() > kMaxHeads)) return std::nullopt;
  const int head = has_head ? static_cast<int>(numbers->front()) : 0;
  return MatrixCell{{*kind, head}, (*numbers)[numbers->size() - 2], numbers->back()};
}

}  // namespace

Result<GradientTarget> parse_target(std::string_view flag, std::string_view text) {
  if (text == "sum-of-squares") return GradientTarget{};
  if (const std::optional<MatrixCell> cell = parse_cell(text)) return GradientTarget{cell};
  return usage_error(std::string(flag) + ": \"" + std::string(text) +
                     "\" is not sum-of-squares, out:ROW:COL, concat:ROW:COL, nor heads_out, attn, scaled or scores "
                     "with :HEAD:ROW:COL, counted from 0");
}

Result<Lens> parse_lens(std::string_view text) {
  std::vector<std::string_view> names;
  for (const Lens lens : kAllLenses) {
    names.emplace_back(lens_name(lens));
    if (names.back() == text) return lens;
  }
  return unknown_name("--lens", text, names);
}

Error lens_needs_inputs(const std::string& lens) {
  return usage_error("--lens: " + lens + " needs q, k and v, but this file holds attention weights alone");
}

Result<NumberFormat> parse_format(std::string_view flag, std::string_view text) {
  if (const std::optional<NumberFormat> format = format_from_name(text)) return *format;
  std::vector<std::string_view> names;
  for (const NumberFormat format : kAllNumberFormats) names.push_back(format_name(format));
  return unknown_name(flag, text, names);
}

}  // namespace qkv::cli
