// Products of float32 matrices, for the projections.
#pragma once

#include <functional>
#include <memory>

#include "core/attention/kernels/views.h"

namespace qkv {

// The right factor of a product, [K, N], in the order in which the kernel reads it. Copies.
class PackedFactor {
 public:
  // Calls pack(part) once for each part below `parts`, in any order, on any threads. Where it leaves some out, the
  // factor must not be used.
  using ForEachPart = std::function<void(Index parts, const std::function<void(Index part)>& pack)>;

  explicit PackedFactor(FloatView factor);
  PackedFactor(FloatView factor, const ForEachPart& for_each);
  ~PackedFactor();
  PackedFactor(const PackedFactor&) = delete;
  PackedFactor& operator=(const PackedFactor&) = delete;
  Index rows() const;
  Index cols() const;

  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// out = left · factor + bias. left [M, K], bias [N] or nullptr, out [M, N]. Rows may be shared out among threads, a few
// tens at a time so that they stay in a cache: a cell's bits do not depend on how.
void multiply(FloatView left, const PackedFactor& factor, const float* bias, FloatBlock out);

}  // namespace qkv
