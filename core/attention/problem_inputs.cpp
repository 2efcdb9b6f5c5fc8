#include "core/attention/problem_inputs.h"

#include <algorithm>
#include <array>

namespace qkv {
namespace {

const SharedMatrix* address(const std::optional<SharedMatrix>& matrix) { return matrix ? &*matrix : nullptr; }

// Of the kinds that exist once.
const SharedMatrix* find_single(const Problem& problem, MatrixKind kind) {
  if (kind == MatrixKind::kWo) return address(problem.wo);
  if (kind == MatrixKind::kBo) return address(problem.bo);
  if (kind == MatrixKind::kBias) return address(problem.options.bias);
  const auto* source = std::get_if<ProjectedSource>(&problem.source);
  if (source == nullptr) return nullptr;
  switch (kind) {
    case MatrixKind::kX:
      return &source->x;
    case MatrixKind::kWq:
      return &source->wq;
    case MatrixKind::kWk:
      return &source->wk;
    case MatrixKind::kWv:
      return &source->wv;
    case MatrixKind::kBq:
      return address(source->bq);
    case MatrixKind::kBk:
      return address(source->bk);
    case MatrixKind::kBv:
      return address(source->bv);
    default:
      return nullptr;
  }
}

// Of the kinds that exist per head; empty where the source has no such kind.
std::span<const SharedMatrix> heads_of(const Source& source, MatrixKind kind) {
  if (const auto* direct = std::get_if<DirectSource>(&source)) {
    if (kind == MatrixKind::kQ) return direct->q;
    if (kind == MatrixKind::kK) return direct->k;
    if (kind == MatrixKind::kV) return direct->v;
  }
  const auto* given = std::get_if<WeightsSource>(&source);
  return given != nullptr && kind == MatrixKind::kAttn ? given->attn : std::span<const SharedMatrix>();
}

constexpr std::array kInputKinds = {MatrixKind::kQ,  MatrixKind::kK,   MatrixKind::kV,    MatrixKind::kX,
                                    MatrixKind::kWq, MatrixKind::kBq,  MatrixKind::kWk,   MatrixKind::kBk,
                                    MatrixKind::kWv, MatrixKind::kBv,  MatrixKind::kAttn, MatrixKind::kWo,
                                    MatrixKind::kBo, MatrixKind::kBias};

}  // namespace

std::vector<ProblemInput> inputs_of(const Problem& problem) {
  std::vector<ProblemInput> inputs;
  for (const MatrixKind kind : kInputKinds) {
    std::span<const SharedMatrix> matrices = heads_of(problem.source, kind);
    if (const SharedMatrix* single = find_single(problem, kind)) matrices = {single, 1};
    if (!matrices.empty()) inputs.push_back({kind, matrices});
  }
  return inputs;
}

bool same_inputs(const Problem& a, const Problem& b) {
  const auto same_storage = [](const SharedMatrix& one, const SharedMatrix& other) { return one.same_storage(other); };
  const auto same = [&](const ProblemInput& one, const ProblemInput& other) {
    return one.kind == other.kind && std::ranges::equal(one.matrices, other.matrices, same_storage);
  };
  return a.options == b.options && std::ranges::equal(inputs_of(a), inputs_of(b), same);
}

const SharedMatrix* find_input(const Problem& problem, MatrixId id) {
  if (!is_per_head(id.kind)) return find_single(problem, id.kind);
  const std::span<const SharedMatrix> heads = heads_of(problem.source, id.kind);
  return id.head >= 0 && static_cast<std::size_t>(id.head) < heads.size() ? &heads[static_cast<std::size_t>(id.head)]
                                                                          : nullptr;
}

}  // namespace qkv
