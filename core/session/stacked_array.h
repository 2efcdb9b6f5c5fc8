// The matrices of one kind as an array for a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/attention/matrix.h"
#include "core/attention/matrix_id.h"
#include "core/tensor_io/npz.h"

namespace qkv {

// Named by the kind's key in files, as numbers of type To: [H, rows, cols] of a kind that exists per head, [n] of a
// bias of a projection, else [rows, cols]. All of one shape, at least one.
template <class To, class M>
NamedArray stacked_array(MatrixKind kind, const std::vector<const M*>& matrices) {
  const M& first = *matrices.front();
  std::vector<std::uint64_t> shape;
  if (is_per_head(kind)) shape.push_back(matrices.size());
  if (row_axis(kind) != Axis::kSingle) shape.push_back(static_cast<std::uint64_t>(first.rows()));
  shape.push_back(static_cast<std::uint64_t>(first.cols()));
  std::vector<To> values;
  values.reserve(matrices.size() * static_cast<std::size_t>(first.size()));
  for (const M* matrix : matrices) {
    for (Index n = 0; n < matrix->size(); ++n) values.push_back(static_cast<To>(matrix->data()[n]));
  }
  return {std::string(file_key(kind)), std::move(shape), std::move(values)};
}

// Of one matrix.
template <class To, class M>
NamedArray stacked_array(MatrixKind kind, const M& matrix) {
  return stacked_array<To, M>(kind, std::vector<const M*>{&matrix});
}

}  // namespace qkv
