#include "core/session/lens_arrays.h"

#include <cstdint>

#include "core/session/stacked_array.h"

namespace qkv {
namespace {

template <class To, class M>
void add_kind(std::vector<NamedArray>& arrays, const std::string& prefix, MatrixKind kind,
              const MatrixTable<M>& table) {
  std::vector<const M*> matrices;
  for (const M& matrix : table.heads(kind)) matrices.push_back(&matrix);
  if (matrices.empty()) return;
  arrays.push_back(stacked_array<To>(kind, matrices));
  arrays.back().name.insert(0, prefix);
}

template <class To, class M>
std::vector<NamedArray> steps_arrays(const MatrixTable<M>& steps, const KeepMatrix& keep) {
  std::vector<NamedArray> arrays;
  for (const MatrixKind kind : kAllMatrixKinds) {
    if (kind == MatrixKind::kKeep) {
      arrays.push_back(stacked_array<std::uint8_t>(kind, keep));
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
