#include "core/attention/kernels/head_kernel.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/attention/kernels/head_rows.h"
#include "core/attention/kernels/packing.h"

namespace qkv {
PackedKeyValues::PackedKeyValues(FloatView k, FloatView v) : impl_(std::make_unique<Impl>()) { assign(k, v); }

void PackedKeyValues::assign(FloatView k, FloatView v) {
  impl_->keys.resize(k.cols, k.rows);
  impl_->values.resize(v.rows, v.cols);
  impl_->non_finite.clear();
  pack_transposed(k, impl_->keys);
  if (pack_panels(v, impl_->values.cells.data())) return;
  for (Index key = 0; key < v.rows; ++key) set_value(key, v.row(key));
}

PackedKeyValues::~PackedKeyValues() = default;

Index PackedKeyValues::keys() const { return impl_->keys.cols; }
Index PackedKeyValues::d_k() const { return impl_->keys.rows; }
Index PackedKeyValues::d_v() const { return impl_->values.cols; }

void PackedKeyValues::set_key(Index key, const float* row) {
  for (Index k = 0; k < impl_->keys.rows; ++k) *impl_->keys.at(k, key) = row[k];
}

void PackedKeyValues::set_value(Index key, const float* row) {
  std::vector<NonFinite>& list = impl_->non_finite;
  const auto of_key = [key](const NonFinite& one) { return one.key < key; };
  auto at = std::partition_point(list.begin(), list.end(), of_key);
  at = list.erase(at, std::find_if(at, list.end(), [key](const NonFinite& one) { return one.key > key; }));
  for (Index c = 0; c < impl_->values.cols; ++c) {
    const bool finite = std::isfinite(row[c]);
    *impl_->values.at(key, c) = finite ? row[c] : 0.0f;
    if (!finite) at = list.insert(at, {key, c, row[c]}) + 1;
  }
}

std::size_t PackedKeyValues::bytes() const {
  const auto floats = static_cast<std::size_t>(impl_->keys.cells.size() + impl_->values.cells.size());
  return floats * sizeof(float) + impl_->non_finite.capacity() * sizeof(NonFinite);
}

KernelScratch::KernelScratch() : impl_(std::make_unique<Impl>()) {}
KernelScratch::~KernelScratch() = default;
KernelScratch::KernelScratch(KernelScratch&&) noexcept = default;
KernelScratch& KernelScratch::operator=(KernelScratch&&) noexcept = default;

Index preferred_row_block(const HeadInput& input, const HeadOutput& output) {
  return block_rows(input, static_cast<bool>(output.weights));
}

bool computes_whole_groups(Index groups, double flops, int threads) {
  constexpr double kMost = 1e8;  // about a millisecond, which somebody may wait for who stops it
  return groups % threads == 0 && flops <= kMost;
}

double sink_weight(float sink, const RowSoftmax& row) {
  return std::exp(static_cast<double>(sink) - static_cast<double>(row.base) - row.exponent * std::numbers::ln2);
}

}  // namespace qkv
