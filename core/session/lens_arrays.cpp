#include "core/session/lens_arrays.h"

#include <cstdint>
#include <utility>

namespace qkv {
namespace {

using Shape = std::vector<std::uint64_t>;

// The cells of matrices of one shape, one after the other, as numbers of type To.
template <class To, class M>
std::vector<To> cells_of(const std::vector<M>& matrices) {
  std::vector<To> values;
  values.reserve(matrices.size() * static_cast<std::size_t>(matrices.front().size()));
  for (const M& matrix : matrices) {
    for (Index n = 0; n < matrix.size(); ++n) values.push_back(static_cast<To>(matrix.data()[n]));
  }
  return values;
}

// [H, rows, cols] of a kind that exists per head, [n] of a bias row, else [rows, cols].
template <class M>
Shape shape_of(MatrixKind kind, const std::vector<M>& matrices) {
  const auto rows = static_cast<std::uint64_t>(matrices.front().rows());
  const auto cols = static_cast<std::uint64_t>(matrices.front().cols());
  if (is_per_head(kind)) return {matrices.size(), rows, cols};
  if (row_axis(kind) == Axis::kSingle) return {cols};
  return {rows, cols};
}

template <class To, class M>
void add_kind(std::vector<NamedArray>& arrays, const std::string& prefix, MatrixKind kind,
              const MatrixTable<M>& table) {
  const std::vector<M>& matrices = table.heads(kind);
  if (matrices.empty()) return;
  arrays.push_back({prefix + std::string(file_key(kind)), shape_of(kind, matrices), cells_of<To>(matrices)});
}

template <class To, class M>
std::vector<NamedArray> steps_arrays(const MatrixTable<M>& steps, const KeepMatrix& keep) {
  std::vector<NamedArray> arrays;
  for (const MatrixKind kind : kAllMatrixKinds) {
    if (kind == MatrixKind::kKeep) {
      const Shape shape = {static_cast<std::uint64_t>(keep.rows()), static_cast<std::uint64_t>(keep.cols())};
      arrays.push_back({std::string(file_key(kind)), shape, cells_of<std::uint8_t>(std::vector<KeepMatrix>{keep})});
    } else {
      add_kind<To>(arrays, "", kind, steps);
    }
  }
  return arrays;
}

template <class To>
std::vector<NamedArray> gradient_arrays(const Gradient& gradient) {
  std::vector<NamedArray> arrays;
  for (const MatrixKind kind : kAllMatrixKinds) add_kind<To>(arrays, "d_", kind, gradient.by);
  if (!gradient.sink.empty()) {
    arrays.push_back({"d_sink", {gradient.sink.size()}, std::vector<To>(gradient.sink.begin(), gradient.sink.end())});
  }
  return arrays;
}

}  // namespace

std::vector<NamedArray> arrays_of(const MatrixTable<Matrix>& steps, const KeepMatrix& keep) {
  return steps_arrays<float>(steps, keep);
}

std::vector<NamedArray> arrays_of(const MatrixTable<MatrixD>& steps, const KeepMatrix& keep) {
  return steps_arrays<double>(steps, keep);
}

std::vector<NamedArray> arrays_of(const Gradient& gradient, bool wide) {
  return wide ? gradient_arrays<double>(gradient) : gradient_arrays<float>(gradient);
}

}  // namespace qkv
