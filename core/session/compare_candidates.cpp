#include "core/session/compare_candidates.h"

#include <algorithm>
#include <optional>

#include "core/session/read_array.h"

namespace qkv {

namespace {

using Sizes = std::span<const std::uint64_t>;

bool is_read(const std::vector<std::vector<std::uint64_t>>& shapes, Sizes sizes) {
  return std::ranges::any_of(shapes,
                             [&](const std::vector<std::uint64_t>& shape) { return std::ranges::equal(shape, sizes); });
}

// How many axes stand before those of a shape that is read; the fewest parts come first.
std::optional<std::size_t> axes_before(const std::vector<std::vector<std::uint64_t>>& shapes, Sizes sizes) {
  for (std::size_t axes = 0; axes < sizes.size(); ++axes) {
    if (is_read(shapes, sizes.subspan(axes))) return axes;
  }
  return std::nullopt;
}

// Every index of the first axes, the last one fastest; none where those are all of length 1.
void add_parts(const TensorInfo& info, std::size_t axes, MatrixKind kind, std::vector<ArrayCandidate>& candidates) {
  const Sizes leading = Sizes(info.shape).first(axes);
  if (std::ranges::all_of(leading, [](std::uint64_t size) { return size == 1; })) {
    candidates.push_back({{info.name, {}, kind}, &info});
    return;
  }
  if (std::ranges::find(leading, 0U) != leading.end()) return;
  std::vector<std::uint64_t> at(axes, 0);
  while (candidates.size() < kMostCandidates) {
    candidates.push_back({{info.name, at, kind}, &info});
    std::size_t axis = axes;
    while (axis > 0 && ++at[axis - 1] == leading[axis - 1]) at[--axis] = 0;
    if (axis == 0) return;
  }
}

}  // namespace

std::vector<ArrayCandidate> candidates_for(std::span<const TensorInfo> arrays, MatrixKind kind, const KindShape& shape,
                                           int heads) {
  const std::vector<std::vector<std::uint64_t>> shapes = shapes_read(kind, shape, heads);
  std::vector<ArrayCandidate> candidates;
  for (const TensorInfo& info : arrays) {
    if (!info.problem.empty() || info.is_text || candidates.size() >= kMostCandidates) continue;
    if (const std::optional<std::size_t> axes = axes_before(shapes, info.shape)) {
      add_parts(info, *axes, kind, candidates);
    }
  }
  return candidates;
}

}  // namespace qkv
