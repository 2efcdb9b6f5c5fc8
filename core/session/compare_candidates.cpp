#include "core/session/compare_candidates.h"

#include <limits>
#include <optional>

namespace qkv {

namespace {

using Shape = std::span<const std::uint64_t>;

// Products that wrap are no sizes of anything that can be compared.
std::optional<std::uint64_t> count_of(Shape shape) {
  std::uint64_t count = 1;
  for (const std::uint64_t size : shape) {
    if (size != 0 && count > std::numeric_limits<std::uint64_t>::max() / size) return std::nullopt;
    count *= size;
  }
  return count;
}

// How many of the first axes have to be gone for `count` numbers; nullopt where no part has so many.
std::optional<std::size_t> axes_before(Shape shape, std::uint64_t count) {
  for (std::size_t axes = 0; axes + 1 < shape.size(); ++axes) {
    const bool has_parts = count_of(shape.first(axes)).value_or(1) > 0;
    if (has_parts && count_of(shape.subspan(axes)) == count) return axes;
  }
  return std::nullopt;
}

// Every index of the first axes, the last one fastest; none where those are all of length 1.
void add_parts(const TensorInfo& info, std::size_t axes, MatrixKind kind, std::vector<NamePair>& candidates) {
  const Shape leading = Shape(info.shape).first(axes);
  if (count_of(leading) == 1) {
    candidates.push_back({info.name, {}, kind});
    return;
  }
  std::vector<std::uint64_t> at(axes, 0);
  while (candidates.size() < kMostCandidates) {
    candidates.push_back({info.name, at, kind});
    std::size_t axis = axes;
    while (axis > 0 && ++at[axis - 1] == leading[axis - 1]) at[--axis] = 0;
    if (axis == 0) return;
  }
}

}  // namespace

std::vector<NamePair> candidates_for(std::span<const TensorInfo> arrays, MatrixKind kind, const KindShape& shape) {
  const auto cells = static_cast<std::uint64_t>(shape.rows) * static_cast<std::uint64_t>(shape.cols);
  std::vector<NamePair> candidates;
  for (const TensorInfo& info : arrays) {
    if (!info.problem.empty() || info.is_text || candidates.size() >= kMostCandidates) continue;
    std::optional<std::size_t> axes = axes_before(info.shape, cells * static_cast<std::uint64_t>(shape.heads));
    if (!axes && kind == MatrixKind::kAttn) axes = axes_before(info.shape, cells);
    if (axes) add_parts(info, *axes, kind, candidates);
  }
  return candidates;
}

}  // namespace qkv
