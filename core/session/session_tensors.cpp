#include "core/session/session_tensors.h"

#include <algorithm>
#include <utility>

#include "core/session/stacked_array.h"
#include "core/session/tensor_mapping.h"

namespace qkv {

namespace {

std::string quoted(std::string_view name) { return "\"" + std::string(name) + "\""; }

Status check_shape(const Tensor& tensor, std::string_view name, std::size_t low, std::size_t high,
                   std::string_view expected) {
  const std::size_t dimensions = tensor.shape.size();
  const bool wrong = dimensions < low || dimensions > high;
  if (!wrong && std::ranges::find(tensor.shape, 0u) == tensor.shape.end()) return Done{};
  return bad_input(quoted(name) + " has the shape " + shape_text(tensor.shape) +
                   (wrong ? ": it must be " + std::string(expected) : ": it is empty"));
}

Matrix copy_block(const float* values, Index rows, Index cols) { return Eigen::Map<const Matrix>(values, rows, cols); }

// Those of all heads; `matrix_of` gives the matrix of one.
template <class Heads, class MatrixOf>
NamedArray head_array(MatrixKind kind, const Heads& heads, MatrixOf matrix_of) {
  std::vector<const Matrix*> matrices;
  for (const auto& head : heads) matrices.push_back(&static_cast<const Matrix&>(matrix_of(head)));
  return stacked_array<float>(kind, matrices);
}

void add_projected(std::vector<NamedArray>& arrays, const ProjectedSource& source) {
  const auto add = [&](MatrixKind kind, const std::optional<SharedMatrix>& matrix) {
    if (matrix) arrays.push_back(stacked_array<float>(kind, matrix->get()));
  };
  add(MatrixKind::kX, source.x);
  add(MatrixKind::kWq, source.wq);
  add(MatrixKind::kWk, source.wk);
  add(MatrixKind::kWv, source.wv);
  add(MatrixKind::kBq, source.bq);
  add(MatrixKind::kBk, source.bk);
  add(MatrixKind::kBv, source.bv);
}

// 1 = visible.
NamedArray keep_array(const Matrix& keep) { return stacked_array<std::uint8_t>(MatrixKind::kKeep, keep); }

// Of given weights: there is nothing else.
std::vector<NamedArray> given_arrays(const Trace& trace) {
  const auto weights = [](const HeadTrace& head) -> const Matrix& { return head.attn; };
  return {keep_array(trace.keep), head_array(MatrixKind::kAttn, trace.heads, weights)};
}

std::vector<std::string> positions(Index count) {
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(count));
  for (Index i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace

Result<std::vector<SharedMatrix>> heads_from_tensor(const Tensor& tensor, std::string_view name) {
  const Status status = check_shape(tensor, name, 2, 3, "[heads, tokens, d] or [tokens, d]");
  if (!status.ok()) return status.error();
  const std::size_t last = tensor.shape.size() - 1;
  const std::uint64_t heads = last == 2 ? tensor.shape[0] : 1;
  if (heads > static_cast<std::uint64_t>(kMaxHeads)) {
    return bad_input(quoted(name) + " has " + std::to_string(heads) + " heads: at most " + std::to_string(kMaxHeads) +
                     " are read");
  }
  const auto rows = static_cast<Index>(tensor.shape[last - 1]);
  const auto cols = static_cast<Index>(tensor.shape[last]);
  std::vector<SharedMatrix> matrices;
  for (std::uint64_t h = 0; h < heads; ++h) {
    matrices.emplace_back(copy_block(tensor.values.data() + static_cast<Index>(h) * rows * cols, rows, cols));
  }
  return matrices;
}

Result<SharedMatrix> matrix_from_tensor(const Tensor& tensor, std::string_view name) {
  const Status status = check_shape(tensor, name, 2, 2, "a matrix [rows, columns]");
  if (!status.ok()) return status.error();
  return SharedMatrix(
      copy_block(tensor.values.data(), static_cast<Index>(tensor.shape[0]), static_cast<Index>(tensor.shape[1])));
}

Result<SharedMatrix> row_from_tensor(const Tensor& tensor, std::string_view name) {
  const std::string_view expected = "one row: [n] or [1, n]";
  const Status status = check_shape(tensor, name, 1, 2, expected);
  if (!status.ok()) return status.error();
  if (tensor.shape.size() == 2 && tensor.shape[0] != 1) return check_shape(tensor, name, 1, 1, expected).error();
  return SharedMatrix(copy_block(tensor.values.data(), 1, static_cast<Index>(tensor.shape.back())));
}

Status name_tokens_by_position(Session& session) {
  Index queries = 0;
  Index keys = 0;
  if (const auto* direct = std::get_if<DirectSource>(&session.problem.source)) {
    if (!direct->q.empty()) queries = direct->q[0].rows();
    if (!direct->k.empty()) keys = direct->k[0].rows();
  } else if (const auto* given = std::get_if<WeightsSource>(&session.problem.source)) {
    if (!given->attn.empty()) queries = given->attn[0].rows(), keys = given->attn[0].cols();
  } else {
    queries = keys = std::get<ProjectedSource>(session.problem.source).x.rows();
  }
  if (std::max(queries, keys) > kMaxTokens) {
    return bad_input(std::to_string(std::max(queries, keys)) + " tokens are too many: at most " +
                     std::to_string(kMaxTokens) + " are read");
  }
  session.tokens = positions(queries);
  if (keys != queries && !session.key_tokens) session.key_tokens = positions(keys);
  return Done{};
}

Result<Session> session_from_arrays(const TensorFile& file, std::string title) {
  const TensorSet files = {{title, file}};
  const MappingProposal proposal = propose_mapping(files);
  if (proposal.error) return *proposal.error;
  if (!proposal.questions.empty()) return bad_input(question_text(proposal.questions.front()));
  return apply_mapping(files, proposal.mapping, std::move(title));
}

std::vector<NamedArray> arrays_of(const Trace& trace) {
  if (is_weights_only(trace.problem.source)) return given_arrays(trace);
  const auto shared = [](const SharedMatrix& matrix) -> const Matrix& { return matrix.get(); };
  std::vector<NamedArray> arrays;
  if (const auto* source = std::get_if<ProjectedSource>(&trace.problem.source)) add_projected(arrays, *source);
  arrays.push_back(head_array(MatrixKind::kQ, trace.q, shared));
  arrays.push_back(head_array(MatrixKind::kK, trace.k, shared));
  arrays.push_back(head_array(MatrixKind::kV, trace.v, shared));
  const auto& heads = trace.heads;
  const auto member = [](const LazyMatrix HeadTrace::*matrix) {
    return [matrix](const HeadTrace& head) -> const Matrix& { return head.*matrix; };
  };
  const bool holds_cells = trace.streams.empty();
  if (holds_cells) arrays.push_back(head_array(MatrixKind::kScores, heads, member(&HeadTrace::scores)));
  if (holds_cells && !trace.alibi.empty()) {
    arrays.push_back(head_array(MatrixKind::kAlibi, trace.alibi,
                                [](const LazyMatrix& term) -> const Matrix& { return term.get(); }));
  }
  if (trace.problem.options.bias) {
    arrays.push_back(stacked_array<float>(MatrixKind::kBias, trace.problem.options.bias->get()));
  }
  if (holds_cells) {
    arrays.push_back(head_array(MatrixKind::kScaled, heads, member(&HeadTrace::scaled)));
    arrays.push_back(keep_array(trace.keep));
    arrays.push_back(head_array(MatrixKind::kAttn, heads, member(&HeadTrace::attn)));
  }
  arrays.push_back(head_array(MatrixKind::kHeadsOut, heads, member(&HeadTrace::out)));
  arrays.push_back(stacked_array<float>(MatrixKind::kConcat, trace.concat.get()));
  if (trace.problem.wo) arrays.push_back(stacked_array<float>(MatrixKind::kWo, trace.problem.wo->get()));
  if (trace.problem.bo) arrays.push_back(stacked_array<float>(MatrixKind::kBo, trace.problem.bo->get()));
  if (trace.out) arrays.push_back(stacked_array<float>(MatrixKind::kOut, *trace.out));
  return arrays;
}

}  // namespace qkv
