#include "core/session/code.h"

#include <algorithm>

#include "core/attention/problem_inputs.h"
#include "core/base/number_text.h"
#include "core/session/stacked_array.h"

namespace qkv {

std::string_view code_key(CodeKind kind) {
  switch (kind) {
    case CodeKind::kNumpy:
      return "numpy";
    case CodeKind::kPytorch:
      return "pytorch";
    case CodeKind::kLatex:
      return "latex";
  }
  return "";
}

std::optional<CodeKind> code_kind_from_key(std::string_view key) {
  for (const CodeKind kind : kAllCodeKinds) {
    if (code_key(kind) == key) return kind;
  }
  return std::nullopt;
}

std::string_view code_title(CodeKind kind) {
  switch (kind) {
    case CodeKind::kNumpy:
      return "NumPy";
    case CodeKind::kPytorch:
      return "PyTorch";
    case CodeKind::kLatex:
      return "LaTeX";
  }
  return "";
}

std::string_view code_extension(CodeKind kind) { return kind == CodeKind::kLatex ? ".tex" : ".py"; }

Index numbers_in_script(const Problem& problem) {
  auto count = static_cast<Index>(problem.options.key_valid.size() + problem.options.sink.size());
  for (const ProblemInput& input : inputs_of(problem)) {
    for (const SharedMatrix& matrix : input.matrices) count += matrix->size();
  }
  return count;
}

std::vector<NamedArray> script_arrays(const Problem& problem) {
  std::vector<NamedArray> arrays;
  for (const ProblemInput& input : inputs_of(problem)) {
    std::vector<const Matrix*> matrices;
    for (const SharedMatrix& matrix : input.matrices) matrices.push_back(&matrix.get());
    arrays.push_back(stacked_array<float>(input.kind, matrices));
  }
  const AttentionOptions& options = problem.options;
  if (!options.key_valid.empty()) {
    std::vector<std::uint8_t> valid(options.key_valid.size());
    std::transform(options.key_valid.begin(), options.key_valid.end(), valid.begin(),
                   [](std::uint8_t value) -> std::uint8_t { return value != 0; });
    arrays.push_back({"key_valid", {valid.size()}, std::move(valid)});
  }
  if (!options.sink.empty()) arrays.push_back({"sink", {options.sink.size()}, options.sink});
  return arrays;
}

Status check_script(const Shapes& shapes) {
  if (shapes.d_k == 0) return unsupported("the weights of this session are given: there is no computation to write");
  if (held_bytes(shapes) <= kMostHeldBytes) return Done{};
  return unsupported("a script keeps scores, scaled and attn of " + std::to_string(shapes.heads) + "×" +
                     std::to_string(shapes.nq) + "×" + std::to_string(shapes.nk) + " cells, in float64 " +
                     format_fixed(2 * held_bytes(shapes) / 1073741824.0, 1, false) + " GiB: use fewer tokens or heads");
}

}  // namespace qkv
